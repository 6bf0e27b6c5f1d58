/** The form of an HTTP route, new or stored. */
import { NumberInput, Switch, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { ListEditor } from '../shared/forms/list-editor.js';
import { editPage, newPage } from '../shared/forms/form-pages.js';
import { NameField } from '../shared/forms/name-field.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { routes, type Route } from './routes.js';
import { text } from './routes.text.js';

type Values = Pick<Route, 'name' | 'host' | 'path_prefix' | 'enabled' | 'hops' | 'backend'>;

const newHop: Route['hops'][number] = { node_id: '', listen_addr: '0.0.0.0', listen_port: 80 };

const labels = {
  host: text.host,
  path_prefix: text.pathPrefix,
  enabled: text.enabledLabel,
  hops: text.hops,
  'hops.*.node_id': text.node,
  'hops.*.listen_addr': text.address,
  'hops.*.listen_port': text.port,
  backend: text.backend,
};

function valuesOf(route: Route | undefined): Values {
  if (route === undefined) {
    return { name: '', host: '', path_prefix: '/', enabled: true, hops: [newHop], backend: '' };
  }
  const { name, host, path_prefix, enabled, hops, backend } = route;
  return { name, host, path_prefix, enabled, hops, backend };
}

function Fields({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { hops } = form.getValues();
  return (
    <>
      <NameField form={form} hint={text.nameHint} />
      <TextInput label={text.host} description={text.hostHint} required {...form.getInputProps('host')} />
      <TextInput label={text.pathPrefix} description={text.pathHint} {...form.getInputProps('path_prefix')} />
      <ListEditor
        legend={text.hops}
        hint={text.hopsHint}
        count={hops.length}
        addLabel={text.addHop}
        onAdd={() => form.insertListItem('hops', newHop)}
        removeLabel={text.removeHop}
        onRemove={(index) => form.removeListItem('hops', index)}
        error={form.errors['hops']}
      >
        {(index) => (
          <>
            <ResourceSelect
              kind={{ type: 'node' }}
              label={text.node}
              required
              except={hops.map(({ node_id: nodeId }) => nodeId)}
              {...form.getInputProps(`hops.${index}.node_id`)}
            />
            <TextInput label={text.address} w={130} {...form.getInputProps(`hops.${index}.listen_addr`)} />
            <NumberInput
              label={text.port}
              min={1}
              max={65_535}
              w={100}
              required
              {...form.getInputProps(`hops.${index}.listen_port`)}
            />
          </>
        )}
      </ListEditor>
      <TextInput label={text.backend} description={text.backendHint} required {...form.getInputProps('backend')} />
      <Switch label={text.enabledLabel} {...form.getInputProps('enabled', { type: 'checkbox' })} />
    </>
  );
}

const page = { type: 'route', valuesOf, labels, Fields } as const;
export const NewRoutePage = newPage({ ...page, title: text.add, create: routes.create });
export const EditRoutePage = editPage({ ...page, one: routes.one, update: routes.update });
