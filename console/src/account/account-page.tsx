/** One's own account: the profile and the password. */
import { Checkbox, PasswordInput, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { nullable } from '../shared/forms/nullable.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import { queryClient } from '../shared/live/queries.js';
import { meQuery } from '../shared/session.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { LinkButton } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { Section } from '../shared/ui/section.js';
import { changePassword, updateAccount, type User } from './account.js';
import { text } from './account.text.js';

export function AccountPage(): ReactNode {
  const { data: me } = useQuery(meQuery);
  if (me === undefined) return null;
  return (
    <Page
      title={text.title}
      actions={
        <LinkButton variant="default" to="/tokens">
          {text.tokens}
        </LinkButton>
      }
    >
      <Profile me={me} />
      <Password />
    </Page>
  );
}

type Profile = Pick<User, 'display_name' | 'email'>;

const profileOf = (user: User | undefined): Profile => ({
  display_name: user?.display_name ?? null,
  email: user?.email ?? null,
});

function Profile({ me }: { readonly me: User }): ReactNode {
  const [saves, setSaves] = useState(0);
  return (
    <Section title={text.profile}>
      <Facts facts={{ [text.username]: me.username, [text.role]: text.roles[me.role] }} />
      <ResourceForm<Profile, User>
        key={saves}
        resource={me}
        valuesOf={profileOf}
        labels={{ display_name: text.displayName, email: text.email }}
        save={updateAccount}
        onSaved={({ data }) => {
          sayDone(text.saved);
          queryClient.setQueryData(meQuery.queryKey, data);
          // Makes the form anew, with what is saved.
          setSaves(saves + 1);
        }}
        role="viewer"
        saveLabel={text.save}
      >
        {(form) => (
          <>
            <TextInput label={text.displayName} autoComplete="name" {...nullable(form, 'display_name')} />
            <TextInput label={text.email} type="email" autoComplete="email" {...nullable(form, 'email')} />
          </>
        )}
      </ResourceForm>
    </Section>
  );
}

type PasswordValues = Required<Schemas['PasswordChange']>;

function Password(): ReactNode {
  const [changes, setChanges] = useState(0);
  return (
    <Section title={text.password}>
      <Text size="sm">{text.passwordMeaning}</Text>
      <ResourceForm<PasswordValues, never>
        key={changes}
        valuesOf={() => ({ current_password: '', new_password: '', revoke_tokens: false })}
        labels={{ current_password: text.currentPassword, new_password: text.newPassword }}
        save={({ values }) => changePassword(values as PasswordValues) as Promise<never>}
        onSaved={() => {
          sayDone(text.changed);
          // Empties the form.
          setChanges(changes + 1);
        }}
        role="viewer"
        saveLabel={text.change}
      >
        {(form) => (
          <>
            <PasswordInput
              label={text.currentPassword}
              autoComplete="current-password"
              required
              {...form.getInputProps('current_password')}
            />
            <PasswordInput
              label={text.newPassword}
              description={text.newPasswordHint}
              autoComplete="new-password"
              required
              {...form.getInputProps('new_password')}
            />
            <Checkbox label={text.revokeTokens} {...form.getInputProps('revoke_tokens', { type: 'checkbox' })} />
          </>
        )}
      </ResourceForm>
    </Section>
  );
}
