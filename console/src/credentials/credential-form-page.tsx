/** The forms of credentials: a new one of any type, the edit of a stored one, and the rotation of its key or certificate. */
import { Alert, Select } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { editPage } from '../shared/forms/form-pages.js';
import { text as formText } from '../shared/forms/forms.text.js';
import { NameField } from '../shared/forms/name-field.js';
import { ResourceForm, type FormOf } from '../shared/forms/resource-form.js';
import { sayDone, sayDoneOf } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { typeNames } from '../shared/ui/resource-link.js';
import { resourcePage } from '../shared/ui/resource-page.js';
import { Sign } from '../shared/ui/state.js';
import {
  emptyKey,
  KeyFields,
  keyFieldsOf,
  labels,
  RealityFields,
  realityValuesOf,
  type KeyValues,
  type RealityValues,
} from './credential-fields.js';
import { credentials, type Credential } from './credentials.js';
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
    <Page title={text.add}>
      <ResourceForm<NewValues, Credential>
        valuesOf={() => ({ name: '', ...emptyKey, ...realityValuesOf() })}
        labels={labels}
        save={({ values, headers }) => credentials.create({ values: newOf(key_type, values as NewValues), headers })}
        onSaved={(done) => {
          sayDoneOf(formText.added(typeNames['credential'] ?? '', done.data.name), done);
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
              value={key_type}
              onChange={(chosen) =>
                void navigate({ to: '.', search: { key_type: chosen ?? undefined }, replace: true })
              }
            />
            <NameField form={form} hint={text.nameHint} />
            {key_type === 'reality' ? (
              <RealityFields form={form as FormOf<RealityValues>} />
            ) : (
              <KeyFields form={form as FormOf<KeyValues>} type={key_type} />
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

export const EditCredentialPage = editPage<Stored, Credential>({
  type: 'credential',
  one: credentials.one,
  update: credentials.update,
  valuesOf: storedOf,
  labels,
  Fields: ({ form, resource }) => (
    <>
      <NameField form={form} hint={text.nameHint} />
      {resource?.key_type === 'reality' && <RealityFields form={form as FormOf<RealityValues>} />}
    </>
  ),
});

export const RotateCredentialPage = resourcePage(credentials, ({ resource: credential }) => {
  const navigate = useNavigate();
  const { id, name, key_type: type, version, certificate } = credential;
  /** The version that the person has seen; the newest once a refusal has told of it. */
  const [seen, see] = useState<typeof version | undefined>(version);
  const back = (): void => void navigate({ to: '/credentials/$id', params: { id } });
  // A reality credential has its key in another one.
  if (type === 'reality') return null;
  const initial: KeyValues = {
    ...emptyKey,
    self_signed: { ...emptyKey.self_signed, subject_alt_names: certificate?.subject_alt_names ?? [] },
  };
  return (
    <Page title={text.rotateTitle(name)}>
      <Alert color="orange" variant="light" icon={<Sign mood="warning" />} maw={640}>
        {text.rotateMeaning[type]}
      </Alert>
      <ResourceForm<KeyValues, Credential>
        valuesOf={() => initial}
        labels={labels}
        save={({ values }) =>
          credentials
            .update(id, {
              values: keyFieldsOf(type, values as KeyValues),
              headers: { 'if-match': `"${seen ?? version}"` },
            })
            .catch((error: unknown) => {
              see(undefined);
              throw error;
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
});
