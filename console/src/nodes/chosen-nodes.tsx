/**
 * What can be done with several nodes at once: labels and agent commands as one API command each, deletes one by one.
 */
import { Button, Group, List, Menu, Stack, TagsInput, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Refusal } from '../shared/api/client.js';
import { Confirm } from '../shared/forms/confirm.js';
import { useLoss } from '../shared/forms/losses.js';
import { LabelsInput } from '../shared/forms/labels-input.js';
import { useDialog } from '../shared/ui/dialog.js';
import { sayDone } from '../shared/ui/done.js';
import { formatCount } from '../shared/ui/format.js';
import type { ChosenProps } from '../shared/ui/list-page.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { sentenceOf } from '../shared/ui/sentence.js';
import { labelNodes, nodes, referrersQuery, sendCommands, type AgentCommand, type Node } from './nodes.js';
import { text } from './nodes.text.js';

const commands = ['RELOAD_CONFIG', 'RUN_DIAGNOSTICS', 'RESTART_PINGORA'] as const;

export function ChosenNodes({ chosen, onClear }: ChosenProps<Node>): ReactNode {
  const labelling = useDialog('labels');
  const deleting = useDialog('delete');
  return (
    <Group gap="xs" mih={36} role="toolbar" aria-label={text.chosen(formatCount(chosen.length))}>
      <Text size="sm" fw={600}>
        {text.chosen(formatCount(chosen.length))}
      </Text>
      <Button size="xs" variant="default" onClick={labelling.open}>
        {text.labelsColumn}
      </Button>
      <Menu>
        <Menu.Target>
          <Button size="xs" variant="default">
            {text.commands}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {commands.map((command) => (
            <Choice key={command} command={command} />
          ))}
        </Menu.Dropdown>
      </Menu>
      <Button size="xs" variant="default" onClick={deleting.open}>
        {text.deleteChosen}
      </Button>
      <Button size="xs" variant="subtle" onClick={onClear}>
        {text.clearChoice}
      </Button>
      <LabelThem opened={labelling.opened} chosen={chosen} onClose={labelling.close} />
      {deleting.opened && <DeleteThem chosen={chosen} onClose={deleting.close} onClear={onClear} />}
      {commands.map((command) => (
        <TellThem key={command} command={command} chosen={chosen} />
      ))}
    </Group>
  );
}

function Choice({ command }: { readonly command: AgentCommand }): ReactNode {
  const { open } = useDialog(command.toLowerCase());
  return <Menu.Item onClick={open}>{text.commandNames[command]}</Menu.Item>;
}

interface DialogProps {
  readonly chosen: readonly Node[];
  readonly onClose: () => void;
}

const idsOf = (chosen: readonly Node[]): string[] => chosen.map(({ id }) => id);

/** Typed text survives closing the dialog, until it is saved or no node is chosen. */
function LabelThem({ opened, chosen, onClose }: DialogProps & { readonly opened: boolean }): ReactNode {
  const [set, setSet] = useState<Record<string, string>>({});
  const [removed, setRemoved] = useState<string[]>([]);
  const keys = [...new Set(chosen.flatMap(({ labels }) => Object.keys(labels)))].sort();
  const something = removed.length > 0 || Object.keys(set).length > 0;
  useLoss('typed', () => (something ? [text.labelsColumn] : []));
  const save = async (): Promise<void> => {
    const { entry } = await labelNodes({ node_ids: idsOf(chosen), set, remove: removed });
    setSet({});
    setRemoved([]);
    sayDone(text.labelled(formatCount(chosen.length)), entry === null ? undefined : { entry: entry.id });
  };
  return (
    <Confirm
      opened={opened}
      mild
      title={text.labelThem(formatCount(chosen.length))}
      action={text.saveLabels}
      onConfirm={something ? save : undefined}
      onClose={onClose}
    >
      <Stack gap="sm">
        <LabelsInput label={text.setLabels} value={set} onChange={setSet} />
        <TagsInput label={text.removeLabels} data={keys} value={removed} onChange={setRemoved} />
      </Stack>
    </Confirm>
  );
}

function TellThem({ command, chosen }: Pick<DialogProps, 'chosen'> & { readonly command: AgentCommand }): ReactNode {
  const { opened, close } = useDialog(command.toLowerCase());
  return (
    <Confirm
      opened={opened}
      mild={command !== 'RESTART_PINGORA'}
      title={text.tellThem(text.commandNames[command], formatCount(chosen.length))}
      action={text.send}
      onConfirm={async () => {
        await sendCommands({ node_ids: idsOf(chosen), command });
        sayDone(text.queued(text.commandNames[command]));
      }}
      onClose={close}
    >
      {text.commandMeanings[command]}
    </Confirm>
  );
}

interface Refused {
  readonly node: Node;
  readonly refusal: Refusal;
}

/** The service may refuse some: they stay, each with what stands in its way; the others are gone. */
function DeleteThem({ chosen, onClose, onClear }: DialogProps & { readonly onClear: () => void }): ReactNode {
  const [refused, setRefused] = useState<readonly Refused[]>([]);
  const finish = (): void => {
    onClose();
    onClear();
  };
  const remove = async (): Promise<void> => {
    const outcomes: Refused[] = [];
    const done: { readonly resourceId: string; readonly requestId: string }[] = [];
    for (const node of chosen) {
      try {
        done.push({ resourceId: node.id, requestId: (await nodes.remove(node.id)).requestId });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        outcomes.push({ node, refusal: error });
      }
    }
    if (done.length > 0) sayDone(text.deletedThem(formatCount(done.length)), done);
    setRefused(outcomes);
    if (outcomes.length === 0) finish();
  };
  if (refused.length > 0) {
    return (
      <Confirm opened title={text.notDeleted} action="" onConfirm={undefined} onClose={finish}>
        <List size="sm" spacing={4}>
          {refused.map(({ node, refusal }) => (
            <List.Item key={node.id}>
              <ResourceLink type="node" id={node.id} name={node.name} /> <Obstacle nodeId={node.id} refusal={refusal} />
            </List.Item>
          ))}
        </List>
      </Confirm>
    );
  }
  return (
    <Confirm
      opened
      title={text.deleteThem(formatCount(chosen.length))}
      action={text.deleteChosen}
      onConfirm={remove}
      onClose={onClose}
      keepOpen
    >
      {text.deleteThemMeaning}
    </Confirm>
  );
}

/** What stands in the way of a delete: what refers to the node, or else the service's sentence. */
function Obstacle({ nodeId, refusal }: { readonly nodeId: string; readonly refusal: Refusal }): ReactNode {
  const { data } = useQuery(referrersQuery(nodeId));
  if (data === undefined || data.items.length === 0) return sentenceOf(refusal);
  return (
    <>
      {text.namedBy}{' '}
      {data.items.map((user, index) => (
        <span key={user.id}>
          {index > 0 && ', '}
          <ResourceLink {...user} />
        </span>
      ))}
    </>
  );
}
