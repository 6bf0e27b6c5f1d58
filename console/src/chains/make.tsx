/**
 * Makes what a chain needs without leaving its form: an upstream, a certificate, a key, a REALITY credential. The form
 * chooses it at once.
 */
import { Button, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState, type ReactNode } from 'react';
import { newIdempotencyKey, randomHex, type Schemas } from '../shared/api/client.js';
import { crud } from '../shared/api/crud.js';
import { useAttempt } from '../shared/forms/attempt.js';
import { text as formText } from '../shared/forms/forms.text.js';
import { useLoss } from '../shared/forms/losses.js';
import { goToFirstMistake } from '../shared/forms/missing.js';
import { Problem } from '../shared/ui/problem.js';
import { text } from './chains.text.js';

const upstreams = crud('l4_upstream');
const credentials = crud('credential');

interface Field {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
}

interface MakeProps {
  readonly label: string;
  readonly fields: readonly Field[];
  readonly meaning?: string;
  /** @returns the id of what was made. @throws Refusal */
  readonly make: (typed: Readonly<Record<string, string>>) => Promise<string>;
  readonly onMade: (id: string) => void;
}

function Make({ label, fields, meaning, make, onMade }: MakeProps): ReactNode {
  const [opened, { open, close }] = useDisclosure();
  const [typed, type] = useState<Readonly<Record<string, string>>>({});
  const [missing, setMissing] = useState<ReadonlySet<string>>(new Set());
  const { working, refused, attempt } = useAttempt();
  useLoss('typed', () => (opened ? fields.filter(({ name }) => typed[name]).map(({ label: of }) => of) : []));
  const submit = (form: HTMLFormElement): void => {
    const empty = fields.filter(({ name }) => (typed[name] ?? '').trim() === '').map(({ name }) => name);
    setMissing(new Set(empty));
    if (empty.length > 0) return void setTimeout(() => goToFirstMistake(form));
    void attempt(async () => {
      onMade(await make(typed));
      type({});
      close();
    });
  };
  return (
    <>
      <Button size="compact-xs" variant="subtle" mt={4} onClick={open}>
        {label}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        title={label}
        centered
        closeButtonProps={{ 'aria-label': formText.cancel }}
      >
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            // This form is inside the form of the chain.
            event.stopPropagation();
            submit(event.currentTarget);
          }}
        >
          <Stack>
            {meaning !== undefined && <Text size="sm">{meaning}</Text>}
            {fields.map(({ name, label: words, hint }, index) => (
              <TextInput
                key={name}
                label={words}
                description={hint}
                required
                data-autofocus={index === 0 || undefined}
                autoComplete="off"
                value={typed[name] ?? ''}
                error={missing.has(name) && formText.missing(words)}
                onChange={({ currentTarget: { value } }) => type((before) => ({ ...before, [name]: value }))}
              />
            ))}
            {refused !== undefined && <Problem error={refused} />}
            <Button type="submit" loading={working}>
              {text.make}
            </Button>
          </Stack>
        </form>
      </Modal>
    </>
  );
}

const name: Field = { name: 'name', label: text.name };

interface MadeProps {
  readonly onMade: (id: string) => void;
}

export function MakeUpstream({ onMade }: MadeProps): ReactNode {
  return (
    <Make
      label={text.makeUpstream}
      fields={[name, { name: 'endpoint', label: text.endpointLabel, hint: text.endpointHint }]}
      make={async (typed) => {
        const { data } = await upstreams.create({
          values: { ...typed },
          headers: { 'idempotency-key': newIdempotencyKey() },
        });
        return data.id;
      }}
      onMade={onMade}
    />
  );
}

type KeyType = Schemas['Credential']['key_type'];

const make = async (values: Schemas['NewCredential']): Promise<string> =>
  (await credentials.create({ values, headers: { 'idempotency-key': newIdempotencyKey() } })).data.id;

const kinds: Readonly<Record<KeyType, Pick<MakeProps, 'fields' | 'meaning' | 'make'>>> = {
  x25519: {
    fields: [name],
    meaning: text.keyHint,
    make: ({ name: of = '' }) => make({ name: of, key_type: 'x25519' }),
  },
  tls_cert: {
    fields: [name, { name: 'host', label: text.commonName, hint: text.commonNameHint }],
    make: ({ name: of = '', host = '' }) =>
      make({ name: of, key_type: 'tls_cert', self_signed: { common_name: host, subject_alt_names: [host] } }),
  },
  reality: {
    fields: [
      name,
      { name: 'server', label: text.serverName, hint: text.serverNameHint },
      { name: 'imitated', label: text.imitated, hint: text.endpointHint },
    ],
    make: async ({ name: of = '', server = '', imitated = '' }) => {
      const at = imitated.lastIndexOf(':');
      const key = await make({ name: `${of} key`, key_type: 'x25519' });
      try {
        return await make({
          name: of,
          key_type: 'reality',
          x25519_credential_id: key,
          server_names: [server],
          short_ids: [randomHex(shortIdBytes)],
          target_host: at < 0 ? imitated : imitated.slice(0, at),
          target_port: at < 0 ? 443 : Number(imitated.slice(at + 1)),
        });
      } catch (error) {
        // Nothing is left behind, and the name of the key is free for the next try.
        await credentials.remove(key);
        throw error;
      }
    },
  },
};

const shortIdBytes = 8;

export function MakeCredential({ keyType, onMade }: MadeProps & { readonly keyType: KeyType }): ReactNode {
  return <Make label={text.makeCredential[keyType]} onMade={onMade} {...kinds[keyType]} />;
}
