/** The order of one listener, which may not exist yet. */
import { ActionIcon, Group, Input, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Refusal, type Done } from '../shared/api/client.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { sayDoneOf } from '../shared/ui/done.js';
import { formatListener } from '../shared/ui/format.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import {
  deletePolicy,
  listenersQuery,
  policyId,
  savePolicy,
  type ListenerKey,
  type Policy,
} from './listener-policies.js';
import { transports, type PolicySearch } from './listener-policies-search.js';
import { text } from './listener-policies.text.js';

type Stored = Policy & { readonly id: string; readonly version: number | string };
type Kind = Policy['priorityOrder'][number];

const labels = {
  nodeId: text.node,
  transport: text.transport,
  listenAddr: text.address,
  listenPort: text.port,
  priorityOrder: text.order,
};

/** The listener that the address names; undefined where it names none. */
function keyOf({ node_id, transport, listen_addr, listen_port }: PolicySearch): ListenerKey | undefined {
  const listenPort = Number(listen_port);
  if (node_id === undefined || transport === undefined || listen_addr === undefined || !Number.isInteger(listenPort)) {
    return undefined;
  }
  return { nodeId: node_id, transport, listenAddr: listen_addr, listenPort };
}

const newKey: ListenerKey = { nodeId: '', transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 443 };

export function ListenerPolicyFormPage(): ReactNode {
  const search = useSearch({ from: '/listener-policies/edit' });
  const key = keyOf(search);
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(listenersQuery(key?.nodeId));
  if (data === undefined) return <NotYet error={error} refetch={refetch} />;
  const listener = data.items.find((item) => key !== undefined && policyId(item) === policyId(key));
  const title = key && formatListener(key.transport, key.listenAddr, key.listenPort);
  const back = (): void => void navigate({ to: '/listener-policies', search: { node_id: key?.nodeId } });
  // No answer has the version of a policy, so its order stands for it.
  const stored = listener?.policySaved
    ? { ...listener, id: policyId(listener), version: listener.priorityOrder.join() }
    : undefined;
  const save = async (policy: Policy): Promise<Done<Stored>> => {
    // Its order has not been seen.
    if (key === undefined && data.items.some((item) => item.policySaved && policyId(item) === policyId(policy)))
      throw new Refusal({ status: 409, code: 'conflict', sentence: text.exists, requestId: null });
    const done = await savePolicy(policy);
    return { ...done, data: { ...done.data, id: policyId(policy) } };
  };
  return (
    <Page
      title={title === undefined ? text.newTitle : text.editTitle(title)}
      actions={
        key !== undefined &&
        listener?.policySaved === true && (
          <ResourceActions
            type="listener_policy"
            id={policyId(key)}
            name={text.editTitle(title ?? '')}
            remove={{
              run: () => deletePolicy(key),
              meaning: text.removeMeaning,
              list: { to: '/listener-policies' },
            }}
          />
        )
      }
    >
      <ResourceForm<Policy, Stored>
        key={key === undefined ? '' : policyId(key)}
        resource={stored}
        valuesOf={(policy) => ({
          ...(key ?? newKey),
          priorityOrder: policy?.priorityOrder ?? (data.defaultPriorityOrder as Kind[]),
        })}
        labels={labels}
        save={({ values }) => save({ ...key, ...values } as Policy)}
        onSaved={(done) => {
          sayDoneOf(text.done, done);
          back();
        }}
        onCancel={back}
        saveLabel={text.save}
      >
        {(form) => (
          <>
            {key === undefined && (
              <>
                <ResourceSelect kind={{ type: 'node' }} label={text.node} required {...form.getInputProps('nodeId')} />
                <Select label={text.transport} data={transports} {...form.getInputProps('transport')} />
                <TextInput label={text.address} required {...form.getInputProps('listenAddr')} />
                <NumberInput label={text.port} min={1} max={65_535} required {...form.getInputProps('listenPort')} />
              </>
            )}
            <Order
              order={form.getValues().priorityOrder}
              error={form.errors['priorityOrder']}
              onChange={(order) => form.setFieldValue('priorityOrder', order as never)}
            />
          </>
        )}
      </ResourceForm>
    </Page>
  );
}

interface OrderProps {
  readonly order: readonly Kind[];
  readonly error: ReactNode;
  readonly onChange: (order: readonly Kind[]) => void;
}

function Order({ order, error, onChange }: OrderProps): ReactNode {
  const swap = (index: number): void => {
    const [one, two] = [order[index], order[index + 1]];
    if (one !== undefined && two !== undefined) onChange(order.with(index, two).with(index + 1, one));
  };
  return (
    <Input.Wrapper label={text.order} description={text.orderHint} error={error} labelElement="div">
      <Stack gap={6} pt="xs" component="ol" m={0} p={0}>
        {order.map((kind, index) => (
          <Group key={kind} component="li" gap="xs">
            <Text size="sm" w={90}>
              {index + 1}. {text.kinds[kind]}
            </Text>
            <ActionIcon
              variant="default"
              aria-label={text.earlier(text.kinds[kind])}
              disabled={index === 0}
              onClick={() => swap(index - 1)}
            >
              ↑
            </ActionIcon>
            <ActionIcon
              variant="default"
              aria-label={text.later(text.kinds[kind])}
              disabled={index === order.length - 1}
              onClick={() => swap(index)}
            >
              ↓
            </ActionIcon>
          </Group>
        ))}
      </Stack>
    </Input.Wrapper>
  );
}
