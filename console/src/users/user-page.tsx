/** One user. The service changes nothing of another person but the password, which shuts them out. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { meQuery } from '../shared/session.js';
import { Facts } from '../shared/ui/facts.js';
import { LinkButton } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { userQuery } from './users.js';
import { text } from './users.text.js';

export function UserPage(): ReactNode {
  const { id } = useParams({ from: '/users/$id' });
  const { data: me } = useQuery(meQuery);
  const { data: user, error, refetch } = useQuery(userQuery(id));
  if (user === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  return (
    <Page
      title={user.username}
      actions={
        <ResourceActions type="user" id={id} name={user.username} role="admin">
          {me?.id !== id && (
            <LinkButton variant="default" to="/users/$id/password" params={{ id }}>
              {text.reset}
            </LinkButton>
          )}
        </ResourceActions>
      }
    >
      <Section title={text.details}>
        <Facts
          facts={{
            [text.role]: `${text.roles[user.role]}. ${text.roleMeanings[user.role]}`,
            [text.displayName]: user.display_name,
            [text.email]: user.email,
            [text.created]: <When at={user.created_at} />,
            [text.updated]: <When at={user.updated_at} />,
          }}
        />
      </Section>
    </Page>
  );
}
