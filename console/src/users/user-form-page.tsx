/** The forms of users: a new one, and a new password for one. */
import { Alert, PasswordInput, Select, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { nullable } from '../shared/forms/nullable.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import { rolesUpTo } from '../shared/session.js';
import { sayDone } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { resourcePage } from '../shared/ui/resource-page.js';
import { Sign } from '../shared/ui/state.js';
import { resetPassword, users, type User } from './users.js';
import { text } from './users.text.js';

type Values = Required<Schemas['NewUser']>;

const labels = {
  username: text.username,
  password: text.password,
  role: text.role,
  display_name: text.displayName,
  email: text.email,
};

export const NewUserPage = newPage<Values, User>({
  type: 'user',
  title: text.add,
  role: 'admin',
  undoable: false,
  labels,
  valuesOf: () => ({ username: '', password: '', role: 'viewer', display_name: null, email: null }),
  create: users.create,
  Fields,
});

function Fields({ form }: FieldsProps<Values, User>): ReactNode {
  return (
    <>
      <TextInput
        label={text.username}
        description={text.usernameHint}
        autoComplete="off"
        required
        autoFocus
        {...form.getInputProps('username')}
      />
      <Password {...form.getInputProps('password')} />
      <Select
        label={text.role}
        description={`${text.roleMeanings[form.getValues().role]} ${text.roleHint}`}
        data={rolesUpTo('admin').map((value) => ({ value, label: text.roles[value] }))}
        {...form.getInputProps('role')}
      />
      <TextInput label={text.displayName} {...nullable(form, 'display_name')} />
      <TextInput label={text.email} type="email" {...nullable(form, 'email')} />
    </>
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

export const ResetPasswordPage = resourcePage(users, ({ resource: { id, username } }) => {
  const navigate = useNavigate();
  const back = (): void => void navigate({ to: '/users/$id', params: { id } });
  return (
    <Page title={text.resetTitle(username)}>
      <Alert color="orange" variant="light" icon={<Sign mood="warning" />} maw={640}>
        {text.resetMeaning}
      </Alert>
      <ResourceForm<Schemas['PasswordReset'], User>
        valuesOf={() => ({ new_password: '' })}
        labels={{ new_password: text.password }}
        save={({ values }) => resetPassword(id, values as Schemas['PasswordReset'])}
        onSaved={() => {
          sayDone(text.resetDone(username));
          back();
        }}
        onCancel={back}
        role="admin"
        saveLabel={text.resetNow}
      >
        {(form) => <Password autoFocus {...form.getInputProps('new_password')} />}
      </ResourceForm>
    </Page>
  );
});
