/** The form of a node, new or stored. The page of a new one begins with what its machine needs. */
import { Textarea, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { editPage, newPage, type FieldsProps } from '../shared/forms/form-pages.js';
import { LabelsInput } from '../shared/forms/labels-input.js';
import { NameField } from '../shared/forms/name-field.js';
import { nullable } from '../shared/forms/nullable.js';
import { nodes, type CreatedNode, type Node } from './nodes.js';
import { text } from './nodes.text.js';

type Values = Pick<Node, 'name' | 'description' | 'address' | 'labels'>;

const labels = { address: text.address, description: text.description, labels: text.labelsColumn };

const valuesOf = (node: Node | undefined): Values => ({
  name: node?.name ?? '',
  description: node?.description ?? null,
  address: node?.address ?? null,
  labels: node?.labels ?? {},
});

function Fields({ form }: FieldsProps<Values, Node>): ReactNode {
  const { labels: chosen } = form.getValues();
  return (
    <>
      <NameField form={form} hint={text.nameHint} />
      <TextInput label={text.address} description={text.addressHint} {...nullable(form, 'address')} />
      <LabelsInput
        {...form.getInputProps('labels')}
        value={chosen}
        onChange={(changed) => form.setFieldValue('labels', changed)}
      />
      <Textarea label={text.description} rows={2} {...nullable(form, 'description')} />
    </>
  );
}

const page = { type: 'node', valuesOf, labels, Fields } as const;

export const NewNodePage = newPage<Values, Node, CreatedNode>({
  ...page,
  title: text.add,
  create: nodes.create,
  withSecret: true,
});

export const EditNodePage = editPage<Values, Node>({ ...page, one: nodes.one, update: nodes.update });
