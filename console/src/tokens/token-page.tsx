/** One API token: what it may do, when it ends, where it was used. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { Facts } from '../shared/ui/facts.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { TokenEnd } from './token-end.js';
import { deleteToken, tokenQuery } from './tokens.js';
import { text } from './tokens.text.js';

export function TokenPage(): ReactNode {
  const { id } = useParams({ from: '/tokens/$id' });
  const seesAll = useMay('admin');
  const { data: token, error, refetch } = useQuery(tokenQuery(id));
  if (token === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  return (
    <Page
      title={token.name}
      actions={
        <ResourceActions
          type="api_token"
          id={id}
          name={token.name}
          role="viewer"
          remove={{
            run: () => deleteToken(id),
            meaning: text.removeMeaning,
            list: { to: '/tokens' },
            undoable: false,
          }}
        />
      }
    >
      <Section title={text.details}>
        <Facts
          facts={{
            [text.role]: text.roles[token.role],
            ...(seesAll && { [text.owner]: <NamedLink type="user" id={token.user_id} /> }),
            [text.ends]: <TokenEnd token={token} />,
            [text.from]: token.from.join(', ') || text.anywhere,
            [text.prefix]: <code>{token.prefix}…</code>,
            [text.lastUsed]: <When at={token.last_used_at} />,
            [text.lastUsedFrom]: token.last_used_from,
            [text.created]: <When at={token.created_at} />,
          }}
        />
      </Section>
    </Page>
  );
}
