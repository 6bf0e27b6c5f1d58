/** When a token ends. */
import type { ReactNode } from 'react';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import type { ApiToken } from './tokens.js';
import { text } from './tokens.text.js';

export function TokenEnd({ token }: { readonly token: ApiToken }): ReactNode {
  if (token.expired) return <State mood="bad">{text.ended}</State>;
  return token.expires_at === null ? text.never : <When at={token.expires_at} />;
}
