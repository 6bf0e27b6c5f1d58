/** When a token ends. */
import type { ReactNode } from 'react';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import type { ApiToken } from './tokens.js';
import { text } from './tokens.text.js';

export function TokenEnd({ token }: { readonly token: ApiToken }): ReactNode {
  if (token.expired) return <StateOf kind="apiToken" is="expired" />;
  return token.expires_at === null ? text.never : <When at={token.expires_at} />;
}
