/** How a target is dialled: plainly, over TLS with pins, or as a REALITY server. */
import { Input, SegmentedControl, Select, TagsInput, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.js';
import { securityText as text } from './security.text.js';

type Tls = NonNullable<Schemas['L4Upstream']['tls']>;
type Reality = NonNullable<Schemas['L4Upstream']['reality']>;
type Security = 'none' | 'tls' | 'reality';

const emptyTls: Tls = { server_name: '', spki_pins_sha256: [] };
const emptyReality: Reality = { outer: 'tcp', public_key: '', server_name: '', short_id: '' };

/**
 * The words for each field.
 * @param path of the object that has them, with a dot at its end; empty for the form itself
 */
export const securityLabels = (path: string): Readonly<Record<string, string>> => ({
  [`${path}tls`]: text.tls,
  [`${path}tls.server_name`]: text.serverName,
  [`${path}tls.spki_pins_sha256`]: text.pins,
  [`${path}reality`]: text.reality,
  [`${path}reality.outer`]: text.carriedBy,
  [`${path}reality.public_key`]: text.publicKey,
  [`${path}reality.server_name`]: text.serverName,
  [`${path}reality.short_id`]: text.shortId,
});

interface SecurityFieldsProps {
  readonly path: string;
  readonly tls: Tls | null | undefined;
  readonly reality: Reality | null | undefined;
  /** At most one is given. */
  readonly onChoose: (chosen: { readonly tls?: Tls; readonly reality?: Reality }) => void;
  readonly form: {
    readonly errors: Readonly<Record<string, ReactNode>>;
    // What Mantine's forms give for any field.
    getInputProps(path: string): object;
  };
}

export function SecurityFields({ path, tls, reality, onChoose, form }: SecurityFieldsProps): ReactNode {
  const security: Security = tls ? 'tls' : reality ? 'reality' : 'none';
  const choose = (chosen: Security): void =>
    onChoose(chosen === 'tls' ? { tls: emptyTls } : chosen === 'reality' ? { reality: emptyReality } : {});
  return (
    <>
      <Input.Wrapper label={text.security} error={form.errors[`${path}tls`] ?? form.errors[`${path}reality`]}>
        <div>
          <SegmentedControl<Security>
            aria-label={text.security}
            value={security}
            onChange={choose}
            data={[
              { value: 'none', label: text.plain },
              { value: 'tls', label: text.tls },
              { value: 'reality', label: text.reality },
            ]}
          />
        </div>
      </Input.Wrapper>
      {security === 'tls' && (
        <>
          <TextInput label={text.serverName} required {...form.getInputProps(`${path}tls.server_name`)} />
          <TagsInput
            label={text.pins}
            description={text.pinsHint}
            required
            {...form.getInputProps(`${path}tls.spki_pins_sha256`)}
          />
        </>
      )}
      {security === 'reality' && (
        <>
          <Select label={text.carriedBy} data={['tcp', 'quic']} {...form.getInputProps(`${path}reality.outer`)} />
          <TextInput label={text.publicKey} required {...form.getInputProps(`${path}reality.public_key`)} />
          <TextInput label={text.serverName} required {...form.getInputProps(`${path}reality.server_name`)} />
          <TextInput label={text.shortId} {...form.getInputProps(`${path}reality.short_id`)} />
        </>
      )}
    </>
  );
}
