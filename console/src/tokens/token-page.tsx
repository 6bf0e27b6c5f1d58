/** One API token: what it may do, when it ends, where it was used. */
import { useState } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { useJustMade } from '../shared/just-made.js';
import { useMay } from '../shared/session.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { SecretOnce } from '../shared/ui/secret-once.js';
import { When } from '../shared/ui/when.js';
import { TokenEnd } from './token-end.js';
import { tokens } from './tokens.js';
import { text } from './tokens.text.js';

export const TokenPage = resourcePage(tokens, ({ resource: token }) => {
  const seesAll = useMay('admin');
  const made = useJustMade<Schemas['CreatedApiToken']>(token.id);
  const [kept, setKept] = useState(false);
  return (
    <ResourcePage
      of={tokens}
      resource={token}
      role="viewer"
      removeMeaning={text.removeMeaning}
      removedForGood
      notice={
        made !== undefined &&
        !kept && (
          <SecretOnce title={text.madeTitle} label={text.token} secret={made.token} onKept={() => setKept(true)}>
            {text.made}
          </SecretOnce>
        )
      }
      facts={{
        [text.role]: text.roles[token.role],
        ...(seesAll && { [text.owner]: <NamedLink type="user" id={token.user_id} /> }),
        [text.ends]: <TokenEnd token={token} />,
        [text.from]: token.from.join(', ') || text.anywhere,
        [text.prefix]: <code>{token.prefix}…</code>,
        [text.lastUsed]: <When at={token.last_used_at} />,
        [text.lastUsedFrom]: token.last_used_from,
      }}
    />
  );
});
