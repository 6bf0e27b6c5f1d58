/** What the agent of a node can be told to do, and what became of it. */
import { Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { Confirm } from '../shared/forms/confirm.js';
import { queryClient } from '../shared/live/queries.js';
import { actorName } from '../shared/ui/actor.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { useDialog } from '../shared/ui/dialog.js';
import { sayDone } from '../shared/ui/done.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount } from '../shared/ui/format.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Section } from '../shared/ui/section.js';
import { StateOf } from '../shared/ui/state-of.js';
import { When } from '../shared/ui/when.js';
import { commandsQuery, refreshConfig, sendCommand } from './nodes.js';
import { text } from './nodes.text.js';

interface Action {
  /** Its word in the address. */
  readonly dialog: string;
  readonly label: string;
  readonly meaning: string;
  /** It cuts no connection. */
  readonly mild: boolean;
  /** @returns what to say when it is done */
  readonly run: (nodeId: string) => Promise<string>;
}

const commands = ['RELOAD_CONFIG', 'RUN_DIAGNOSTICS', 'RESTART_PINGORA'] as const;
const actions: readonly Action[] = [
  {
    dialog: 'compile',
    label: text.compileAgain,
    meaning: text.compileMeaning,
    mild: true,
    run: async (nodeId) => {
      const { generation, pushed } = await refreshConfig(nodeId);
      return text.compiled(formatCount(generation), pushed);
    },
  },
  ...commands.map((command) => ({
    dialog: command.toLowerCase(),
    label: text.commandNames[command],
    meaning: text.commandMeanings[command],
    mild: command !== 'RESTART_PINGORA',
    run: async (nodeId: string) => {
      await sendCommand(nodeId, command);
      await queryClient.invalidateQueries(commandsQuery(nodeId));
      return text.queued(text.commandNames[command]);
    },
  })),
];

/** Items of a menu; `CommandQuestions` stand beside it. */
export function CommandItems(): ReactNode {
  return (
    <>
      <Menu.Label>{text.commands}</Menu.Label>
      {actions.map((action) => (
        <Choice key={action.dialog} {...action} />
      ))}
      <Menu.Divider />
    </>
  );
}

export function CommandQuestions({ nodeId }: { readonly nodeId: string }): ReactNode {
  return actions.map((action) => <Question key={action.dialog} nodeId={nodeId} {...action} />);
}

function Choice({ dialog, label }: Action): ReactNode {
  const { open } = useDialog(dialog);
  return <Menu.Item onClick={open}>{label}</Menu.Item>;
}

function Question({ nodeId, dialog, label, meaning, mild, run }: Action & { readonly nodeId: string }): ReactNode {
  const { opened, close } = useDialog(dialog);
  return (
    <Confirm
      opened={opened}
      title={label}
      action={text.send}
      mild={mild}
      onConfirm={async () => sayDone(await run(nodeId))}
      onClose={close}
    >
      {meaning}
    </Confirm>
  );
}

type Sent = Schemas['ListedAgentCommand'];

const columns = columnsOf<Sent>([
  [text.queuedAt, (row) => <When at={row.queued_at} />],
  [text.command, (row) => text.commandNames[row.command]],
  [text.state, (row) => <StateOf kind="command" is={row.state} />],
  [text.deliveredAt, (row) => <When at={row.delivered_at} />, { minor: true }],
  [text.by, (row) => actorName(row.actor), { minor: true }],
]);

export function Commands({ nodeId }: { readonly nodeId: string }): ReactNode {
  return (
    <Section title={text.commands}>
      <ListTable
        caption={text.commandsCaption}
        columns={columns}
        query={useQuery(commandsQuery(nodeId))}
        rowKey={({ id }) => id}
        empty={<Empty title={text.noCommands}>{text.noCommandsHint}</Empty>}
      />
    </Section>
  );
}
