/** The search parameters of the list of credentials. */
import { listSearch, sorts, timeOf, wordOf, type Search } from '../shared/search.js';

export const keyTypes = ['x25519', 'reality', 'tls_cert'] as const;

export const credentialsSearch = (search: Search) => ({
  ...listSearch(search),
  sort: wordOf(search, 'sort', [...sorts, 'not_after', '-not_after'] as const),
  key_type: wordOf(search, 'key_type', keyTypes),
  /** Only certificates that end before this time, or soon. */
  expires_before: wordOf(search, 'expires_before', ['soon']) ?? timeOf(search, 'expires_before'),
});

const [soonMs, hourMs] = [30 * 86_400_000, 3_600_000];

/** The time for the API. By the hour, because each other time is read anew. */
export const endsBefore = (expires: string | undefined, now: number): string | undefined =>
  expires === 'soon' ? new Date(Math.ceil(now / hourMs) * hourMs + soonMs).toISOString() : expires;

/** The search parameters of the form for a new one. */
export const newCredentialSearch = (search: Search) => ({ key_type: wordOf(search, 'key_type', keyTypes) });
