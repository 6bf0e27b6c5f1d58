/** The form of a node, new or stored. A new one ends with what its machine needs, which has the PSK and is shown once. */
import { Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { EditPage } from '../shared/forms/edit-page.js';
import { ResourceForm } from '../shared/forms/resource-form.js';
import type { FormOf } from '../shared/forms/resource-form.js';
import { sayDoneOf } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { LabelsInput } from './labels-input.js';
import { Machine } from './machine.js';
import { createNode, nodeQuery, updateNode } from './nodes.js';
import type { CreatedNode, Node } from './nodes.js';
import { text } from './nodes.text.js';

type Values = Pick<Node, 'name' | 'description' | 'address' | 'labels'>;

const labels = { name: text.name, address: text.address, description: text.description, labels: text.labelsColumn };

const valuesOf = (node: Node | undefined): Values => ({
  name: node?.name ?? '',
  description: node?.description ?? null,
  address: node?.address ?? null,
  labels: node?.labels ?? {},
});

export function NewNodePage(): ReactNode {
  const navigate = useNavigate();
  const [made, setMade] = useState<CreatedNode>();
  if (made !== undefined) {
    return (
      <Page title={text.madeTitle(made.name)}>
        <Machine
          nodeId={made.id}
          psk={made.control_psk}
          onKept={() => void navigate({ to: '/nodes/$id', params: { id: made.id } })}
        />
      </Page>
    );
  }
  return (
    <Page title={text.newTitle}>
      <ResourceForm<Values, CreatedNode>
        valuesOf={valuesOf}
        labels={labels}
        save={createNode}
        onSaved={(done) => {
          setMade(done.data);
          sayDoneOf(text.created(done.data.name), done);
        }}
        onCancel={() => void navigate({ to: '/nodes' })}
        saveLabel={text.add}
      >
        {(form) => <NodeFields form={form} />}
      </ResourceForm>
    </Page>
  );
}

export function EditNodePage(): ReactNode {
  const { id } = useParams({ from: '/nodes/$id/edit' });
  const navigate = useNavigate();
  return (
    <EditPage<Values, Node>
      query={useQuery(nodeQuery(id))}
      text={text}
      valuesOf={valuesOf}
      labels={labels}
      save={(changes) => updateNode(id, changes)}
      back={() => void navigate({ to: '/nodes/$id', params: { id } })}
    >
      {(form) => <NodeFields form={form} />}
    </EditPage>
  );
}

function NodeFields({ form }: { readonly form: FormOf<Values> }): ReactNode {
  const { labels: chosen } = form.getValues();
  return (
    <>
      <TextInput
        label={text.name}
        description={text.nameHint}
        required
        data-autofocus
        autoFocus
        autoComplete="off"
        {...form.getInputProps('name')}
      />
      <OptionalText form={form} field="address" label={text.address} description={text.addressHint} />
      <LabelsInput
        {...form.getInputProps('labels')}
        value={chosen}
        onChange={(changed) => form.setFieldValue('labels', changed)}
      />
      <OptionalText form={form} field="description" label={text.description} lines={2} />
    </>
  );
}

interface OptionalTextProps {
  readonly form: FormOf<Values>;
  readonly field: 'address' | 'description';
  readonly label: string;
  readonly description?: string;
  readonly lines?: number;
}

/** A text that is null in the API when it is empty here. */
function OptionalText({ form, field, lines, ...input }: OptionalTextProps): ReactNode {
  const Input = lines === undefined ? TextInput : Textarea;
  return (
    <Input
      {...input}
      {...(lines !== undefined && { rows: lines })}
      {...form.getInputProps(field)}
      value={form.getValues()[field] ?? ''}
      onChange={({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
        form.setFieldValue(field, currentTarget.value === '' ? null : currentTarget.value)
      }
    />
  );
}
