/** What several tests name. */

/** Paths outside `/api`; they need no token. */
export const openPaths = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'];

export const unknownId = '00000000-0000-4000-8000-000000000000';
