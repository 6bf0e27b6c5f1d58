/** Where a chain ends: an upstream, or an endpoint of its own. */
import { Input, SegmentedControl, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { SecurityFields } from '../shared/forms/security-fields.js';
import type { Values } from './chain-values.js';
import { text } from './chains.text.js';
import { MakeUpstream } from './make.js';

type Kind = 'upstream' | 'endpoint';

export function TargetFields({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { target } = form.getValues();
  const kind: Kind = 'upstream_id' in target ? 'upstream' : 'endpoint';
  const choose = (chosen: Kind): void =>
    form.setFieldValue('target', chosen === 'upstream' ? { upstream_id: '' } : { endpoint: '' });
  return (
    <>
      <Input.Wrapper label={text.endsAt} error={form.errors['target']}>
        <div>
          <SegmentedControl<Kind>
            aria-label={text.endsAt}
            value={kind}
            onChange={choose}
            data={[
              { value: 'upstream', label: text.upstream },
              { value: 'endpoint', label: text.endpoint },
            ]}
          />
        </div>
      </Input.Wrapper>
      {kind === 'upstream' ? (
        <ResourceSelect
          kind={{ type: 'l4_upstream' }}
          label={text.upstreamLabel}
          required
          {...form.getInputProps('target.upstream_id')}
        >
          <MakeUpstream onMade={(id) => form.setFieldValue('target', { upstream_id: id })} />
        </ResourceSelect>
      ) : (
        <TextInput
          label={text.endpointLabel}
          description={text.endpointHint}
          required
          {...form.getInputProps('target.endpoint')}
        />
      )}
      {'endpoint' in target && (
        <SecurityFields
          path="target."
          tls={target.tls}
          reality={target.reality}
          onChoose={(chosen) => form.setFieldValue('target', { endpoint: target.endpoint, ...chosen })}
          form={form}
        />
      )}
    </>
  );
}
