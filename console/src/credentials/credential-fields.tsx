/** The fields of credentials of each type. */
import { Input, NumberInput, PasswordInput, SegmentedControl, TagsInput, Text, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { TextFile } from '../shared/forms/text-file.js';
import type { Schemas } from '../shared/api/client.js';
import type { Credential } from './credentials.js';
import { text } from './credentials.text.js';

export const labels = {
  name: text.name,
  key_type: text.type,
  private_key: text.privateKey,
  x25519_credential_id: text.keyPair,
  server_names: text.serverNames,
  short_ids: text.shortIds,
  target_host: text.targetHost,
  target_port: text.targetPort,
  certificate_pem: text.certificatePem,
  private_key_pem: text.privateKeyPem,
  'self_signed.common_name': text.commonName,
  'self_signed.subject_alt_names': text.altNames,
  'self_signed.days': text.days,
};

/** Where a key or a certificate comes from. */
export type KeyValues = {
  readonly origin: 'generate' | 'upload' | 'self_sign' | 'keep_key';
  readonly private_key: string;
  readonly certificate_pem: string;
  readonly private_key_pem: string;
  readonly self_signed: Required<Schemas['SelfSigned']>;
};

const defaultDays = 365;

export const emptyKey: KeyValues = {
  origin: 'generate',
  private_key: '',
  certificate_pem: '',
  private_key_pem: '',
  self_signed: { common_name: '', subject_alt_names: [], days: defaultDays },
};

/** The body of the request that they make. */
export function keyFieldsOf(type: 'x25519' | 'tls_cert', values: KeyValues): Schemas['CredentialChanges'] {
  if (type === 'x25519') return { private_key: values.origin === 'upload' ? values.private_key : null };
  const { certificate_pem, private_key_pem } = values;
  switch (values.origin) {
    case 'upload':
      return { certificate_pem, private_key_pem };
    case 'keep_key':
      return { certificate_pem };
    case 'self_sign':
    case 'generate': {
      const { common_name, subject_alt_names, days } = values.self_signed;
      return { self_signed: { common_name, days, ...(subject_alt_names.length > 0 && { subject_alt_names }) } };
    }
    default:
      return values.origin satisfies never;
  }
}

interface KeyFieldsProps {
  readonly form: FormOf<KeyValues>;
  readonly type: 'x25519' | 'tls_cert';
  /** A key is stored already, which a new certificate can keep. */
  readonly stored?: boolean;
}

export function KeyFields({ form, type, stored = false }: KeyFieldsProps): ReactNode {
  const { origin } = form.getValues();
  const origins =
    type === 'x25519'
      ? [
          { value: 'generate', label: text.generate },
          { value: 'upload', label: text.upload },
        ]
      : [
          { value: 'generate', label: text.selfSign },
          { value: 'upload', label: text.upload },
          ...(stored ? [{ value: 'keep_key', label: text.keepKey }] : []),
        ];
  return (
    <>
      <Input.Wrapper label={text.origin}>
        <div>
          <SegmentedControl aria-label={text.origin} data={origins} {...form.getInputProps('origin')} />
        </div>
      </Input.Wrapper>
      {origin === 'generate' && (type === 'x25519' ? <Hint>{text.generateHint}</Hint> : <SelfSigned form={form} />)}
      {origin === 'upload' && type === 'x25519' && (
        <PasswordInput
          label={text.privateKey}
          description={text.privateKeyHint}
          autoComplete="off"
          required
          {...form.getInputProps('private_key')}
        />
      )}
      {origin === 'keep_key' && <Hint>{text.keepKeyHint}</Hint>}
      {(origin === 'keep_key' || (origin === 'upload' && type === 'tls_cert')) && (
        <TextFile
          label={text.certificatePem}
          description={text.certificatePemHint}
          accept=".pem,.crt,.cer"
          required
          {...form.getInputProps('certificate_pem')}
        />
      )}
      {origin === 'upload' && type === 'tls_cert' && (
        <TextFile
          label={text.privateKeyPem}
          description={text.privateKeyHint}
          accept=".pem,.key"
          required
          {...form.getInputProps('private_key_pem')}
        />
      )}
    </>
  );
}

function Hint({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  );
}

function SelfSigned({ form }: { readonly form: FormOf<KeyValues> }): ReactNode {
  return (
    <>
      <TextInput label={text.commonName} required {...form.getInputProps('self_signed.common_name')} />
      <TagsInput
        label={text.altNames}
        description={text.altNamesHint}
        {...form.getInputProps('self_signed.subject_alt_names')}
      />
      <NumberInput label={text.days} min={1} {...form.getInputProps('self_signed.days')} />
    </>
  );
}

export type RealityValues = {
  readonly x25519_credential_id: string;
  readonly server_names: string[];
  readonly short_ids: string[];
  readonly target_host: string;
  readonly target_port: number;
};

const httpsPort = 443;

/** The values of a stored credential, or the initial ones of a new one. */
export const realityValuesOf = (credential?: Credential): RealityValues => ({
  x25519_credential_id: credential?.x25519_credential_id ?? '',
  server_names: credential?.server_names ?? [],
  short_ids: credential?.short_ids ?? [],
  target_host: credential?.target_host ?? '',
  target_port: credential?.target_port ?? httpsPort,
});

export function RealityFields({ form }: { readonly form: FormOf<RealityValues> }): ReactNode {
  return (
    <>
      <ResourceSelect
        kind={{ type: 'credential', keyType: 'x25519' }}
        label={text.keyPair}
        required
        {...form.getInputProps('x25519_credential_id')}
      />
      <TagsInput
        label={text.serverNames}
        description={text.serverNamesHint}
        required
        {...form.getInputProps('server_names')}
      />
      <TagsInput label={text.shortIds} description={text.shortIdsHint} required {...form.getInputProps('short_ids')} />
      <TextInput
        label={text.targetHost}
        description={text.targetHostHint}
        required
        {...form.getInputProps('target_host')}
      />
      <NumberInput label={text.targetPort} min={1} max={65_535} required {...form.getInputProps('target_port')} />
    </>
  );
}
