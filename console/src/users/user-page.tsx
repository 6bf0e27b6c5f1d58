/** One user. The service changes nothing of another person but the password, which shuts them out. */
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '../shared/session.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { users } from './users.js';
import { text } from './users.text.js';

export const UserPage = resourcePage(users, ({ resource: user }) => {
  const { data: me } = useQuery(meQuery);
  return (
    <ResourcePage
      of={users}
      resource={user}
      role="admin"
      actions={
        me?.id !== user.id && (
          <LinkButton variant="default" to="/users/$id/password" params={{ id: user.id }}>
            {text.reset}
          </LinkButton>
        )
      }
      facts={{
        [text.role]: `${text.roles[user.role]}. ${text.roleMeanings[user.role]}`,
        [text.displayName]: user.display_name,
        [text.email]: user.email,
      }}
    />
  );
});
