/** The fields of one hop: only what the service says can be chosen, and what else is on the port. */
import {
  Autocomplete,
  Button,
  Collapse,
  Group,
  NumberInput,
  Select,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, type ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { anyAddress, type Values } from './chain-values.js';
import { freePortsQuery, portUsersQuery, type Transport } from './chains.js';
import { text } from './chains.text.js';
import { MakeCredential } from './make.js';

interface HopFieldsProps {
  readonly form: FormOf<Values>;
  readonly index: number;
  /** Those that the payload allows. */
  readonly transports: readonly Transport[];
  /** Set for a stored chain, which is on its ports itself. */
  readonly chainId: string | undefined;
}

const keyOf = ({ outer, security }: Pick<Transport, 'outer' | 'security'>): string => `${outer} ${security}`;

export function HopFields({ form, index, transports, chainId }: HopFieldsProps): ReactNode {
  const { hops } = form.getValues();
  const hop = hops[index];
  if (hop === undefined) return null;
  const path = `hops.${index}`;
  const transport = transports.find((one) => keyOf(one) === keyOf(hop));
  const choose = (key: string | null): void => {
    const chosen = transports.find((one) => keyOf(one) === key);
    if (chosen !== undefined) form.setFieldValue(path, { ...hop, ...fitting(hop, transport, chosen) });
  };
  return (
    <Stack gap="sm" w="100%">
      <Group gap="xs" h={24}>
        <Text size="sm" fw={600}>
          {text.hop(index + 1)}
        </Text>
        {index > 0 && (
          <Button
            size="compact-xs"
            variant="subtle"
            aria-label={text.moveUp(index + 1)}
            onClick={() => form.reorderListItem('hops', { from: index, to: index - 1 })}
          >
            ↑
          </Button>
        )}
      </Group>
      <Group gap="sm" align="flex-start">
        <ResourceSelect
          kind={{ type: 'node' }}
          label={text.node}
          required
          except={hops.map(({ node_id: id }) => id)}
          {...form.getInputProps(`${path}.node_id`)}
        />
        <Select
          label={text.comesWith}
          data={transports.map((one) => ({ value: keyOf(one), label: text.transport(one.outer, one.security) }))}
          value={keyOf(hop)}
          onChange={choose}
          error={form.errors[`${path}.outer`] ?? form.errors[`${path}.security`] ?? form.errors[path]}
          data-path={`${path}.outer`}
          w={170}
        />
        <PortField form={form} index={index} listens={transport?.listens} chainId={chainId} />
      </Group>
      {transport !== undefined && transport.key_type !== null && (
        <ResourceSelect
          key={transport.key_type}
          kind={{ type: 'credential', keyType: transport.key_type }}
          label={text.credential}
          orOnly
          required
          {...form.getInputProps(`${path}.credential_id`)}
        >
          <MakeCredential
            keyType={transport.key_type}
            onMade={(id) => form.setFieldValue(`${path}.credential_id`, id)}
          />
        </ResourceSelect>
      )}
      {transport !== undefined && transport.server_names !== 'none' && (
        <TagsInput
          label={text.serverNames}
          description={text.serverNamesHint[hop.security]}
          {...form.getInputProps(`${path}.server_names`)}
        />
      )}
      <MoreFields form={form} index={index} transport={transport} />
    </Stack>
  );
}

/** Clears what does not fit the new transport: a credential of another type, names where there can be none. */
function fitting(
  { credential_id, server_names, max_streams }: Values['hops'][number],
  before: Transport | undefined,
  { outer, security, ...chosen }: Transport,
): Partial<Values['hops'][number]> {
  return {
    outer,
    security,
    credential_id: chosen.key_type === before?.key_type ? credential_id : '',
    server_names: chosen.server_names === 'none' ? [] : server_names,
    max_streams: chosen.max_streams ? max_streams : '',
  };
}

interface PortFieldProps {
  readonly form: FormOf<Values>;
  readonly index: number;
  readonly listens: Transport['listens'] | undefined;
  readonly chainId: string | undefined;
}

function PortField({ form, index, listens, chainId }: PortFieldProps): ReactNode {
  const { node_id: nodeId = '', listen_port: typed = '' } = form.getValues().hops[index] ?? {};
  const free = useQuery(freePortsQuery(nodeId, listens)).data?.ports ?? [];
  const users = useQuery(portUsersQuery(nodeId, listens, Number(typed))).data?.items ?? [];
  // Filled in once for each node and transport, never over typed text.
  const filled = useRef({ for: '', port: '' });
  const [first] = free;
  useEffect(() => {
    const place = `${nodeId} ${listens}`;
    if (first === undefined || filled.current.for === place) return;
    if (typed !== '' && typed !== filled.current.port) return;
    filled.current = { for: place, port: String(first) };
    form.setFieldValue(`hops.${index}.listen_port`, String(first));
  });
  const others = users
    .flatMap(({ routes }) => routes)
    .filter(({ resourceId }) => resourceId !== chainId)
    .map(({ resourceName: name }) => name);
  return (
    <Autocomplete
      label={text.port}
      description={others.length === 0 ? text.portHint : text.portShared([...new Set(others)].join(', '))}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      required
      inputMode="numeric"
      data={free.map(String)}
      filter={({ options }) => options}
      w={110}
      {...form.getInputProps(`hops.${index}.listen_port`)}
    />
  );
}

interface MoreFieldsProps {
  readonly form: FormOf<Values>;
  readonly index: number;
  readonly transport: Transport | undefined;
}

/** Fields that are seldom set. */
function MoreFields({ form, index, transport }: MoreFieldsProps): ReactNode {
  const path = `hops.${index}`;
  const hop = form.getValues().hops[index];
  const used = hop !== undefined && (hop.listen_addr !== anyAddress || hop.dial_addr !== '' || hop.max_streams !== '');
  const [opened, more] = useDisclosure(used);
  const wrong = ['listen_addr', 'dial_addr', 'max_streams'].some((field) => form.errors[`${path}.${field}`]);
  const shown = opened || wrong;
  return (
    <>
      <Group>
        <Button size="compact-xs" variant="subtle" aria-expanded={shown} onClick={more.toggle}>
          {shown ? text.less : text.more}
        </Button>
      </Group>
      <Collapse expanded={shown}>
        <Group gap="sm" align="flex-start">
          <TextInput label={text.address} w={190} {...form.getInputProps(`${path}.listen_addr`)} />
          <TextInput
            label={text.dialAddr}
            description={text.dialAddrHint}
            w={300}
            maw="100%"
            {...form.getInputProps(`${path}.dial_addr`)}
          />
          {transport?.max_streams === true && (
            <NumberInput
              label={text.maxStreams}
              min={1}
              max={65_535}
              w={190}
              {...form.getInputProps(`${path}.max_streams`)}
            />
          )}
        </Group>
      </Collapse>
    </>
  );
}
