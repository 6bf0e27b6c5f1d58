/** A form with each kind of field, as it is and with an error. */
import {
  Autocomplete,
  Button,
  Checkbox,
  MultiSelect,
  NumberInput,
  PasswordInput,
  Radio,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
} from '@mantine/core';
import type { ReactNode } from 'react';
import { LabelsInput } from '../../shared/forms/labels-input.js';
import { ListEditor } from '../../shared/forms/list-editor.js';
import { TextFile } from '../../shared/forms/text-file.js';
import { TimeField } from '../../shared/forms/time-field.js';
import { FilterBar } from '../../shared/ui/filter-bar.js';
import { Section } from '../../shared/ui/section.js';

const nothing = (): void => undefined;
const words = ['tcp', 'udp'];

export function FieldParts(): ReactNode {
  return (
    <Section title="Fields">
      <FilterBar find={<TextInput aria-label="Find by name" placeholder="Find by name" />} folded>
        <Select aria-label="State" placeholder="Any state" data={words} w={170} />
        <TimeField label="From" value="2030-01-31T12:00:00.000Z" onChange={nothing} />
        <TimeField label="To" value={undefined} onChange={nothing} />
      </FilterBar>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="xl">
        <Fields />
        <Fields error="That is not what was expected." />
      </SimpleGrid>
    </Section>
  );
}

function Fields({ error }: { readonly error?: string }): ReactNode {
  const shared = { error, description: 'What it is for.', required: true };
  return (
    <Stack>
      <TextInput label="Text" {...shared} />
      <Textarea label="Text of lines" {...shared} />
      <PasswordInput label="Password" {...shared} />
      <NumberInput label="Number" suffix=" ms" defaultValue={10_000} thousandSeparator="," {...shared} />
      <Select label="Choice" data={words} {...shared} />
      <MultiSelect label="Choices" data={words} defaultValue={words} {...shared} />
      <Autocomplete label="Text with proposals" data={words} {...shared} />
      <TagsInput label="Words" defaultValue={words} {...shared} />
      <LabelsInput value={{ region: 'eu' }} onChange={nothing} error={error} />
      <TextFile label="File" accept=".pem" onChange={nothing} {...shared} />
      <SegmentedControl aria-label="One of two" data={words} />
      <Switch label="Switch" error={error} />
      <Checkbox label="Checkbox" error={error} />
      <Radio.Group label="One of" {...shared}>
        <Stack gap="xs" pt="xs">
          {words.map((word) => (
            <Radio key={word} value={word} label={word} />
          ))}
        </Stack>
      </Radio.Group>
      <ListEditor
        legend="List"
        count={2}
        addLabel="Add one"
        onAdd={nothing}
        removeLabel={(place) => `Remove ${place}`}
        onRemove={nothing}
        error={error}
      >
        {(index) => <TextInput label={`Part ${index + 1}`} error={error} />}
      </ListEditor>
      <Button disabled={error !== undefined}>Save</Button>
    </Stack>
  );
}
