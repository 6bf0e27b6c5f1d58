/**
 * What is derived from a resource's state alone, for those who may read models but not the domain (`transport/rest`).
 * Not a query: the functions are the domain's own, so that a shown status can't differ from the one decided on.
 */
export { chainStatus } from '../domain/chain/status.js';
export { effectiveMultiplex } from '../domain/settings/settings.js';
