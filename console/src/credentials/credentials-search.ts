/** What the address of the list of credentials holds. */
import { listSearch, sorts, textOf, wordOf, type Search } from '../shared/search.js';

export const keyTypes = ['x25519', 'reality', 'tls_cert'] as const;

export const credentialsSearch = (search: Search) => ({
  ...listSearch(search),
  sort: wordOf(search, 'sort', [...sorts, 'not_after', '-not_after'] as const),
  key_type: wordOf(search, 'key_type', keyTypes),
  /** Certificates that end before this time alone. */
  expires_before: textOf(search, 'expires_before'),
});

/** What the address of the form of a new one holds. */
export const newCredentialSearch = (search: Search) => ({ key_type: wordOf(search, 'key_type', keyTypes) });
