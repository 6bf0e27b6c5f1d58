/** Signing in: a page of its own for a stranger, and a dialog over the page for somebody whose token has ended. */
import { Button, Center, Group, Modal, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { startLive } from '../shared/live/live.js';
import { signIn } from '../shared/session.js';
import { sentenceOf } from '../shared/ui/sentence.js';
import mark from './mark.svg';
import { text } from './shell.text.js';

export function SignInPage(): ReactNode {
  return (
    <Center mih="100vh" p="md" component="main">
      <title>{`${text.signIn} · ${text.product}`}</title>
      <Paper withBorder p="xl" w="100%" maw={380}>
        <Stack>
          <Group gap="sm">
            <img src={mark} width={32} height={32} alt="" />
            <Title order={1}>{text.product}</Title>
          </Group>
          <SignInForm />
        </Stack>
      </Paper>
    </Center>
  );
}

export function SignInAgain({ opened }: { readonly opened: boolean }): ReactNode {
  return (
    <Modal opened={opened} onClose={() => undefined} withCloseButton={false} title={text.signIn} centered>
      <Stack>
        <Text size="sm">{text.signInAgain}</Text>
        <SignInForm />
      </Stack>
    </Modal>
  );
}

function SignInForm(): ReactNode {
  const { working, refused, attempt } = useAttempt();
  const submit = (given: FormData): Promise<void> =>
    attempt(async () => {
      await signIn(String(given.get('username')), String(given.get('password')));
      startLive();
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit(new FormData(event.currentTarget));
      }}
    >
      <Stack>
        <TextInput name="username" label={text.username} autoComplete="username" required autoFocus data-autofocus />
        <PasswordInput
          name="password"
          label={text.password}
          autoComplete="current-password"
          required
          error={refused && sentenceOf(refused)}
        />
        <Button type="submit" loading={working}>
          {text.signIn}
        </Button>
      </Stack>
    </form>
  );
}
