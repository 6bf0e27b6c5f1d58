/** One user. All that can be changed for another person is the password, which shuts them out. */
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '../shared/session.js';
import type { ReactNode } from 'react';
import { AskFirst } from '../shared/forms/confirm.js';
import { sayDone } from '../shared/ui/done.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { shutOut, users, type User } from './users.js';
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
          <>
            <LinkButton variant="default" to="/users/$id/password" params={{ id: user.id }}>
              {text.reset}
            </LinkButton>
            <ShutOut user={user} />
          </>
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

/** For somebody who leaves: one step. */
function ShutOut({ user: { id, username } }: { readonly user: User }): ReactNode {
  return (
    <AskFirst
      dialog="shut-out"
      title={text.shutOutTitle(username)}
      action={text.shutOut}
      onConfirm={async () => {
        const { data } = await shutOut(id);
        sayDone(text.shutOutDone(username, data.join_tokens_deleted));
      }}
    >
      {text.shutOutMeaning}
    </AskFirst>
  );
}
