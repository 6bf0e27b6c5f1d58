/** Paths outside `/api`; they need no token. */
export const openPaths = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'];
