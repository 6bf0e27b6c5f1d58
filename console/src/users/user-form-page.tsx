/** The forms of users: a new one, and a new password for one. */
import { Alert, PasswordInput, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import { rolesUpTo } from '../shared/session.js';
import { sayDone } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { Sign } from '../shared/ui/state.js';
import { createUser, resetPassword, userQuery } from './users.js';
import type { User } from './users.js';
import { text } from './users.text.js';

type Values = Pick<User, 'username' | 'role'> & Record<'password' | 'display_name' | 'email', string>;

const labels = {
  username: text.username,
  password: text.password,
  role: text.role,
  display_name: text.displayName,
  email: text.email,
};

const newOf = ({ username, password, role, display_name, email }: Values): Schemas['NewUser'] => ({
  username,
  password,
  role,
  display_name: display_name || null,
  email: email || null,
});

export function NewUserPage(): ReactNode {
  const navigate = useNavigate();
  return (
    <Page title={text.newTitle}>
      <ResourceForm<Values, User>
        valuesOf={() => ({ username: '', password: '', role: 'viewer', display_name: '', email: '' })}
        labels={labels}
        save={({ values, headers }) => createUser(newOf(values as Values), headers)}
        onSaved={({ data: { id, username } }) => {
          sayDone(text.created_(username));
          void navigate({ to: '/users/$id', params: { id } });
        }}
        onCancel={() => void navigate({ to: '/users' })}
        role="admin"
        saveLabel={text.add}
      >
        {(form) => (
          <>
            <TextInput
              label={text.username}
              description={text.usernameHint}
              autoComplete="off"
              required
              data-autofocus
              {...form.getInputProps('username')}
            />
            <Password {...form.getInputProps('password')} />
            <Select
              label={text.role}
              description={`${text.roleMeanings[form.getValues().role]} ${text.roleHint}`}
              data={rolesUpTo('admin').map((value) => ({ value, label: text.roles[value] }))}
              allowDeselect={false}
              {...form.getInputProps('role')}
            />
            <TextInput label={text.displayName} {...form.getInputProps('display_name')} />
            <TextInput label={text.email} type="email" {...form.getInputProps('email')} />
          </>
        )}
      </ResourceForm>
    </Page>
  );
}

function Password(props: Readonly<Record<string, unknown>>): ReactNode {
  return (
    <PasswordInput
      label={text.password}
      description={text.passwordHint}
      autoComplete="new-password"
      required
      {...props}
    />
  );
}

export function ResetPasswordPage(): ReactNode {
  const { id } = useParams({ from: '/users/$id/password' });
  const navigate = useNavigate();
  const { data: user, error, refetch } = useQuery(userQuery(id));
  if (user === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  const back = (): void => void navigate({ to: '/users/$id', params: { id } });
  return (
    <Page title={text.resetTitle(user.username)}>
      <Alert color="orange" variant="light" icon={<Sign mood="warning" />} maw={640}>
        {text.resetMeaning}
      </Alert>
      <ResourceForm<Schemas['PasswordReset'], User>
        valuesOf={() => ({ new_password: '' })}
        labels={{ new_password: text.password }}
        save={({ values }) => resetPassword(id, values as Schemas['PasswordReset'])}
        onSaved={() => {
          sayDone(text.resetDone(user.username));
          back();
        }}
        onCancel={back}
        role="admin"
        saveLabel={text.resetNow}
      >
        {(form) => <Password data-autofocus {...form.getInputProps('new_password')} />}
      </ResourceForm>
    </Page>
  );
}
