/** The forms of credentials: a new one of any type, the edit of a stored one, and the rotation of its key or certificate. */
import { Alert, Select, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { EditPage } from '../shared/forms/edit-page.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { sayDone, sayDoneOf } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { Sign } from '../shared/ui/state.js';
import { emptyKey, KeyFields, keyFieldsOf, labels, RealityFields, realityValuesOf } from './credential-fields.js';
import type { KeyValues, RealityValues } from './credential-fields.js';
import { createCredential, credentialQuery, updateCredential } from './credentials.js';
import type { Credential } from './credentials.js';
import { keyTypes } from './credentials-search.js';
import { text } from './credentials.text.js';

type NewValues = KeyValues & RealityValues & Pick<Credential, 'name'>;

function newOf(key_type: Credential['key_type'], values: NewValues): Schemas['NewCredential'] {
  const { name } = values;
  switch (key_type) {
    case 'x25519':
      return { name, key_type, ...keyFieldsOf(key_type, values) };
    case 'tls_cert':
      return { name, key_type, ...keyFieldsOf(key_type, values) };
    case 'reality': {
      const { x25519_credential_id, server_names, short_ids, target_host, target_port } = values;
      return { name, key_type, x25519_credential_id, server_names, short_ids, target_host, target_port };
    }
    default:
      return key_type satisfies never;
  }
}

export function NewCredentialPage(): ReactNode {
  const navigate = useNavigate();
  const search = useSearch({ from: '/credentials/new' });
  const key_type: Credential['key_type'] = search.key_type ?? 'tls_cert';
  return (
    <Page title={text.newTitle}>
      <ResourceForm<NewValues, Credential>
        valuesOf={() => ({ name: '', ...emptyKey, ...realityValuesOf() })}
        labels={labels}
        save={({ values, headers }) => createCredential(newOf(key_type, values as NewValues), headers)}
        onSaved={(done) => {
          sayDoneOf(text.created_(done.data.name), done);
          void navigate({ to: '/credentials/$id', params: { id: done.data.id } });
        }}
        onCancel={() => void navigate({ to: '/credentials' })}
        saveLabel={text.add}
      >
        {(form) => (
          <>
            <Select
              label={text.type}
              description={text.typeHints[key_type]}
              data={keyTypes.map((value) => ({ value, label: text.types[value] }))}
              allowDeselect={false}
              value={key_type}
              onChange={(chosen) =>
                void navigate({ to: '.', search: { key_type: chosen ?? undefined }, replace: true })
              }
            />
            <TextInput
              label={text.name}
              description={text.nameHint}
              required
              data-autofocus
              {...form.getInputProps('name')}
            />
            {key_type === 'reality' ? (
              <RealityFields form={form as unknown as FormOf<RealityValues>} />
            ) : (
              <KeyFields form={form as unknown as FormOf<KeyValues>} type={key_type} />
            )}
          </>
        )}
      </ResourceForm>
    </Page>
  );
}

type Stored = { readonly name: string } & Partial<RealityValues>;

const storedOf = (credential: Credential | undefined): Stored => ({
  name: credential?.name ?? '',
  ...(credential?.key_type === 'reality' && realityValuesOf(credential)),
});

export function EditCredentialPage(): ReactNode {
  const { id } = useParams({ from: '/credentials/$id/edit' });
  const navigate = useNavigate();
  return (
    <EditPage<Stored, Credential>
      query={useQuery(credentialQuery(id))}
      text={text}
      valuesOf={storedOf}
      labels={labels}
      save={(changes) => updateCredential(id, changes)}
      back={() => void navigate({ to: '/credentials/$id', params: { id } })}
    >
      {(form, credential) => (
        <>
          <TextInput label={text.name} description={text.nameHint} required {...form.getInputProps('name')} />
          {credential.key_type === 'reality' && <RealityFields form={form as unknown as FormOf<RealityValues>} />}
        </>
      )}
    </EditPage>
  );
}

export function RotateCredentialPage(): ReactNode {
  const { id } = useParams({ from: '/credentials/$id/rotate' });
  const navigate = useNavigate();
  const { data: credential, error, refetch } = useQuery(credentialQuery(id));
  if (credential === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  const { name, key_type: type, version, certificate } = credential;
  const back = (): void => void navigate({ to: '/credentials/$id', params: { id } });
  // A reality credential has its key in another one.
  if (type === 'reality') return null;
  const begun: KeyValues = {
    ...emptyKey,
    self_signed: { ...emptyKey.self_signed, subject_alt_names: certificate?.subject_alt_names ?? [] },
  };
  return (
    <Page title={text.rotateTitle(name)}>
      <Alert color="orange" variant="light" icon={<Sign mood="warning" />} maw={640}>
        {text.rotateMeaning[type]}
      </Alert>
      <ResourceForm<KeyValues, Credential>
        valuesOf={() => begun}
        labels={labels}
        save={({ values }) =>
          updateCredential(id, {
            values: keyFieldsOf(type, values as KeyValues),
            headers: { 'if-match': `"${version}"` },
          })
        }
        onSaved={() => {
          sayDone(text.rotated(name));
          back();
        }}
        onCancel={back}
        saveLabel={text.rotateNow}
      >
        {(form) => <KeyFields form={form} type={type} stored />}
      </ResourceForm>
    </Page>
  );
}
