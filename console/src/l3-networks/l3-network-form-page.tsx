/** The form of an L3 network, new or stored. */
import { NumberInput, Select, Switch, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { ListEditor } from '../shared/forms/list-editor.js';
import { editPage, newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { NameField } from '../shared/forms/name-field.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { credentialQuery, networks, type L3Network } from './l3-networks.js';
import { text } from './l3-networks.text.js';

type Member = Schemas['Member'];
type Tunnel = Schemas['Tunnel'];
type Values = Pick<L3Network, 'name' | 'enabled' | 'mtu' | 'credential_id' | 'server_name'> & {
  readonly members: Member[];
  readonly tunnels: Tunnel[];
};

const defaultMtu = 1380;
const newMember: Member = { node_id: '', addresses: [], routes: [] };
const newTunnel: Tunnel = { listener_node_id: '', listen_addr: '0.0.0.0', listen_port: 443, connector_node_id: '' };

const labels = {
  enabled: text.enabledLabel,
  mtu: text.mtu,
  credential_id: text.credential,
  server_name: text.serverName,
  members: text.members,
  'members.*.node_id': text.node,
  'members.*.interface_name': text.interface,
  'members.*.addresses': text.addresses,
  'members.*.routes': text.routes,
  'members.*.features': text.features,
  tunnels: text.tunnels,
  'tunnels.*.listener_node_id': text.listener,
  'tunnels.*.connector_node_id': text.connector,
  'tunnels.*.listen_addr': text.listenAddr,
  'tunnels.*.listen_port': text.listenPort,
  'tunnels.*.context_id': text.contextId,
};

function valuesOf(network: L3Network | undefined): Values {
  if (network === undefined) {
    return {
      name: '',
      enabled: true,
      mtu: defaultMtu,
      credential_id: '',
      server_name: '',
      members: [newMember, newMember],
      tunnels: [newTunnel],
    };
  }
  const { name, enabled, mtu, credential_id, server_name, members, tunnels } = network;
  return { name, enabled, mtu, credential_id, server_name, members, tunnels };
}

/** The service chooses what is left empty. */
function sent(values: Partial<Values>): Schemas['L3NetworkChanges'] {
  const { members, tunnels, ...rest } = values;
  return {
    ...rest,
    ...(members && {
      members: members.map(({ interface_name: name, features, ...member }) => ({
        ...member,
        ...(name && { interface_name: name }),
        ...(features && features.length > 0 && { features }),
      })),
    }),
    ...(tunnels && {
      tunnels: tunnels.map(({ context_id: context, ...tunnel }) => ({
        ...tunnel,
        ...(typeof context === 'number' && { context_id: context }),
      })),
    }),
  };
}

function Fields({ form }: FieldsProps<Values, L3Network>): ReactNode {
  const { data: credential } = useQuery(credentialQuery(form.getValues().credential_id));
  return (
    <>
      <NameField form={form} hint={text.nameHint} />
      <ResourceSelect
        kind={{ type: 'credential', keyType: 'reality' }}
        label={text.credential}
        required
        {...form.getInputProps('credential_id')}
      />
      <Select
        label={text.serverName}
        description={text.serverNameHint}
        data={credential?.server_names ?? []}
        required
        {...form.getInputProps('server_name')}
      />
      <NumberInput label={text.mtu} suffix=" B" {...form.getInputProps('mtu')} />
      <Members form={form} />
      <Tunnels form={form} />
      <Switch label={text.enabledLabel} {...form.getInputProps('enabled', { type: 'checkbox' })} />
    </>
  );
}

function Members({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { members } = form.getValues();
  return (
    <ListEditor
      legend={text.members}
      hint={text.membersHint}
      count={members.length}
      addLabel={text.addMember}
      onAdd={() => form.insertListItem('members', newMember)}
      removeLabel={text.removeMember}
      onRemove={(index) => form.removeListItem('members', index)}
      error={form.errors['members']}
    >
      {(index) => {
        const input = (field: keyof Member) => form.getInputProps(`members.${index}.${field}`);
        return (
          <>
            <ResourceSelect
              kind={{ type: 'node' }}
              label={text.node}
              required
              except={members.map(({ node_id: id }) => id)}
              {...input('node_id')}
            />
            <TagsInput
              label={text.addresses}
              description={text.addressesHint}
              inputWrapperOrder={['label', 'input', 'description', 'error']}
              w={240}
              required
              {...input('addresses')}
            />
            <TagsInput
              label={text.routes}
              description={text.routesHint}
              inputWrapperOrder={['label', 'input', 'description', 'error']}
              w={240}
              {...input('routes')}
            />
            <TextInput
              label={text.interface}
              description={text.interfaceHint}
              inputWrapperOrder={['label', 'input', 'description', 'error']}
              w={240}
              {...input('interface_name')}
              value={members[index]?.interface_name ?? ''}
            />
            <TagsInput label={text.features} w={240} {...input('features')} value={members[index]?.features ?? []} />
          </>
        );
      }}
    </ListEditor>
  );
}

function Tunnels({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { tunnels } = form.getValues();
  return (
    <ListEditor
      legend={text.tunnels}
      hint={text.tunnelsHint}
      count={tunnels.length}
      addLabel={text.addTunnel}
      onAdd={() => form.insertListItem('tunnels', newTunnel)}
      removeLabel={text.removeTunnel}
      onRemove={(index) => form.removeListItem('tunnels', index)}
      error={form.errors['tunnels']}
    >
      {(index) => {
        const input = (field: keyof Tunnel) => form.getInputProps(`tunnels.${index}.${field}`);
        return (
          <>
            <ResourceSelect kind={{ type: 'node' }} label={text.connector} required {...input('connector_node_id')} />
            <ResourceSelect kind={{ type: 'node' }} label={text.listener} required {...input('listener_node_id')} />
            <TextInput label={text.listenAddr} w={130} required {...input('listen_addr')} />
            <NumberInput label={text.listenPort} min={1} max={65_535} w={100} required {...input('listen_port')} />
            <NumberInput
              label={text.contextId}
              description={text.contextIdHint}
              inputWrapperOrder={['label', 'input', 'description', 'error']}
              min={1}
              w={170}
              {...input('context_id')}
              value={tunnels[index]?.context_id ?? ''}
            />
          </>
        );
      }}
    </ListEditor>
  );
}

const page = { type: 'l3_network', valuesOf, labels, Fields } as const;

export const NewL3NetworkPage = newPage<Values, L3Network>({
  ...page,
  title: text.add,
  create: ({ values, headers }) => networks.create({ values: sent(values), headers }),
});

export const EditL3NetworkPage = editPage<Values, L3Network>({
  ...page,
  one: networks.one,
  update: (id, { values, headers }) => networks.update(id, { values: sent(values), headers }),
});
