/** What is wrong with a node, worst first, each with what to do or where to go. */
import { Alert, Button, Group, List, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { useMay } from '../shared/session.js';
import { sayDone } from '../shared/ui/done.js';
import { formatCount } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Problem } from '../shared/ui/problem.js';
import { FieldLink } from '../shared/ui/resource-link.js';
import { Sign, type Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { refreshConfig, type Node } from './nodes.js';
import { text } from './nodes.text.js';

export function NodeProblems({ node }: { readonly node: Node }): ReactNode {
  const { apply, status, applied_generation: applied, psk_fingerprint: psk } = node;
  return (
    <>
      {apply.state === 'rejected' && (
        <Trouble mood="bad" title={text.rejectedTitle(formatCount(apply.generation ?? 0))}>
          <Stack gap="xs">
            <List size="sm" spacing={4}>
              {apply.errors.map(({ resource_type, resource_id, path, message }) => (
                <List.Item key={`${resource_id} ${path} ${message}`}>
                  <NamedLink type={resource_type} id={resource_id} />{' '}
                  <FieldLink type={resource_type} id={resource_id} path={path} />: {message}
                </List.Item>
              ))}
            </List>
            <Text size="sm">{applied === null ? text.runsNothing : text.stillRuns(formatCount(applied))}</Text>
            <TryAgain nodeId={node.id} />
          </Stack>
        </Trouble>
      )}
      {status === 'offline' && (
        <Trouble mood="bad">
          {text.offlineSince} <When at={node.last_seen_at} />.
        </Trouble>
      )}
      {status === 'pending' && <Trouble mood="idle">{psk === null ? text.noPsk : text.neverCame}</Trouble>}
      {node.duplicate_agent && <Trouble mood="bad">{text.duplicate}</Trouble>}
      {node.version_conflict_at !== null && (
        <Trouble mood="warning">
          {text.conflict} (<When at={node.version_conflict_at} />
          ).
        </Trouble>
      )}
    </>
  );
}

/** Compiles and sends the configuration again: what stood in its way may be gone. */
function TryAgain({ nodeId }: { readonly nodeId: string }): ReactNode {
  const mayOperate = useMay('operator');
  const { working, refused, attempt } = useAttempt();
  if (!mayOperate) return null;
  const again = (): Promise<void> =>
    attempt(async () => {
      const { generation, pushed } = await refreshConfig(nodeId);
      sayDone(text.compiled(formatCount(generation), pushed));
    });
  return (
    <Group gap="sm">
      <Button size="xs" variant="default" loading={working} onClick={() => void again()}>
        {text.tryAgain}
      </Button>
      {refused !== undefined && <Problem error={refused} />}
    </Group>
  );
}

interface TroubleProps {
  readonly mood: Mood;
  readonly title?: string;
  readonly children: ReactNode;
}

function Trouble({ mood, title, children }: TroubleProps): ReactNode {
  return (
    <Alert variant="default" icon={<Sign mood={mood} />} title={title}>
      <Text size="sm" component="div">
        {children}
      </Text>
    </Alert>
  );
}
