/** The search parameters of the list of credentials. */
import { listSearch, sorts, textOf, wordOf, type Search } from '../shared/search.js';

export const keyTypes = ['x25519', 'reality', 'tls_cert'] as const;

export const credentialsSearch = (search: Search) => ({
  ...listSearch(search),
  sort: wordOf(search, 'sort', [...sorts, 'not_after', '-not_after'] as const),
  key_type: wordOf(search, 'key_type', keyTypes),
  /** Only certificates that end before this time. */
  expires_before: textOf(search, 'expires_before'),
});

/** The search parameters of the form for a new one. */
export const newCredentialSearch = (search: Search) => ({ key_type: wordOf(search, 'key_type', keyTypes) });
