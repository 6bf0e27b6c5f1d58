/** Builds a chain hop by hop, or edits one; nothing runs before it is deployed. */
import { Input, SegmentedControl, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { ListEditor } from '../shared/forms/list-editor.js';
import { editPage, newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { NameField } from '../shared/forms/name-field.js';
import { queryClient } from '../shared/live/queries.js';
import { sayDone } from '../shared/ui/done.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { securityLabels } from '../shared/forms/security-fields.js';
import { bodyOf, newHop, valuesOf, type Values } from './chain-values.js';
import { chains, deployChain, deploymentsQuery, transportsQuery, type Chain, type Transport } from './chains.js';
import { text } from './chains.text.js';
import { DraftPath } from './draft-path.js';
import { HopFields } from './hop-fields.js';
import { TargetFields } from './target-fields.js';

const labels = {
  description: text.description,
  enabled: text.enabledLabel,
  payload: text.payload,
  hops: text.hops,
  'hops.*': text.hops,
  'hops.*.node_id': text.node,
  'hops.*.outer': text.comesWith,
  'hops.*.security': text.comesWith,
  'hops.*.listen_port': text.port,
  'hops.*.listen_addr': text.address,
  'hops.*.credential_id': text.credential,
  'hops.*.server_names': text.serverNames,
  'hops.*.max_streams': text.maxStreams,
  'hops.*.dial_addr': text.dialAddr,
  target: text.target,
  'target.upstream_id': text.upstreamLabel,
  'target.endpoint': text.endpointLabel,
  ...securityLabels('target.'),
};

interface RejectedProps {
  readonly form: FormOf<Values>;
  readonly chainId: string;
  /** As the agent names it, such as `hops[0].listen_port`. */
  readonly field: string;
}

/** Shows the agent's words beside the field that they are about, and brings the reader there. */
function Rejected({ form, chainId, field }: RejectedProps): ReactNode {
  const { data } = useQuery(deploymentsQuery(chainId));
  const path = field.replaceAll(/\[(\d+)\]/g, '.$1');
  const errors = data?.items[0]?.nodes.flatMap((node) => node.errors) ?? [];
  const message = errors.find((error) => error.path === field)?.message;
  useEffect(() => {
    if (message !== undefined) form.setFieldError(path, text.agentSaid(message));
    form.getInputNode(path)?.focus();
    // Once for each rejection, because the reader may move on.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [path, message]);
  return null;
}

function Fields({ form, resource }: FieldsProps<Values, Chain>): ReactNode {
  const { field } = useSearch({ strict: false });
  const { hops, payload } = form.getValues();
  const { data: all } = useQuery(transportsQuery);
  const allowed = (carried: Chain['payload']): readonly Transport[] =>
    all?.items.filter((one) => one.payload === carried) ?? [];
  const first = allowed(payload)[0];
  /** Hops that cannot carry it become the first kind that can. */
  const carry = (chosen: Chain['payload']): void => {
    const can = allowed(chosen);
    form.setValues({
      payload: chosen,
      hops: hops.map((hop) => {
        const fits = can.some(({ outer, security }) => outer === hop.outer && security === hop.security);
        const { node_id, listen_port, listen_addr, dial_addr } = hop;
        return fits || can[0] === undefined ? hop : { ...newHop(can[0]), node_id, listen_port, listen_addr, dial_addr };
      }),
    });
  };
  return (
    <>
      {resource !== undefined && field !== undefined && <Rejected form={form} chainId={resource.id} field={field} />}
      <DraftPath values={form.getValues()} />
      <NameField form={form} hint={text.nameHint} />
      <TextInput label={text.description} {...form.getInputProps('description')} />
      <Input.Wrapper label={text.payload} error={form.errors['payload']}>
        <div>
          <SegmentedControl<Chain['payload']>
            aria-label={text.payload}
            value={payload}
            onChange={carry}
            data={(['tcp', 'udp'] as const).map((value) => ({ value, label: text.payloads[value] }))}
          />
        </div>
      </Input.Wrapper>
      <ListEditor
        legend={text.hops}
        hint={text.hopsHint}
        count={hops.length}
        addLabel={text.addHop}
        onAdd={() => first !== undefined && form.insertListItem('hops', newHop(first))}
        removeLabel={text.removeHop}
        onRemove={(index) => form.removeListItem('hops', index)}
        error={form.errors['hops']}
      >
        {(index) => <HopFields form={form} index={index} transports={allowed(payload)} chainId={resource?.id} />}
      </ListEditor>
      <TargetFields form={form} />
      {resource !== undefined && (
        <Switch label={text.enabledLabel} {...form.getInputProps('enabled', { type: 'checkbox' })} />
      )}
    </>
  );
}

const page = { type: 'l4_chain', valuesOf, labels, Fields } as const;

export const NewChainPage = newPage<Values, Chain>({
  ...page,
  title: text.add,
  draft: 'chain',
  also: {
    label: text.addAndDeploy,
    run: async (chain) => {
      const { data, requestId } = await deployChain(chain.id, `"${chain.version}"`, {});
      sayDone(text.deployed(chain.name), { resourceId: chain.id, requestId }, data.warnings);
      await queryClient.invalidateQueries({ queryKey: ['l4_chain'] });
    },
  },
  create: ({ values, headers }) => chains.create({ values: bodyOf(values) as Partial<Schemas['NewL4Chain']>, headers }),
});

export const EditChainPage = editPage<Values, Chain>({
  ...page,
  one: chains.one,
  update: (id, { values, headers }) => chains.update(id, { values: bodyOf(values), headers }),
});
