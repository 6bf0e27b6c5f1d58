/** What an apply did: its entries, its steps, and the PSKs of new nodes, shown once. */
import { Alert, Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { mayLeave } from '../shared/forms/losses.js';
import { pageSize } from '../shared/search.js';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { SecretsOnce } from '../shared/ui/secret-once.js';
import { Section } from '../shared/ui/section.js';
import { Sign } from '../shared/ui/state.js';
import { Entries } from './entries.js';
import { applyQuery, type Applied } from './fleet-file.js';
import { text } from './fleet-file.text.js';
import { PageOfSteps } from './plan-view.js';

interface AppliedViewProps {
  readonly applied: Applied;
  /** Absent for one that was carried out before. */
  readonly onNext?: () => void;
}

export function AppliedView({ applied, onNext }: AppliedViewProps): ReactNode {
  const { commands, control_psks: psks, incomplete } = applied;
  const goOn = async (): Promise<void> => {
    if (await mayLeave()) onNext?.();
  };
  return (
    <Section title={text.appliedTitle}>
      {incomplete !== null && (
        <Alert color="red" variant="light" icon={<Sign mood="bad" />} role="alert">
          {text.incomplete(incomplete.error, formatCount(incomplete.commands_left))}
        </Alert>
      )}
      {applied.rollout_id && (
        <Text size="sm">
          {text.rolledOut}{' '}
          <TextLink to="/rollouts/$id" params={{ id: applied.rollout_id }}>
            {text.toRollout}
          </TextLink>
        </Text>
      )}
      {onNext !== undefined && psks.length > 0 && (
        <SecretsOnce
          title={text.psks}
          secrets={psks.map(({ node, control_psk: psk }) => ({ label: text.psk(node), value: psk }))}
        >
          {text.psksMeaning}
        </SecretsOnce>
      )}
      <div>
        <Text size="sm">{text.entries}</Text>
        <Entries entries={commands} />
      </div>
      <AppliedSteps applied={applied} />
      {onNext !== undefined && (
        <Group>
          <Button variant="default" onClick={() => void goOn()}>
            {text.next}
          </Button>
        </Group>
      )}
    </Section>
  );
}

/** The answer has the first steps of a large apply; later pages are requested when they are opened. */
function AppliedSteps({ applied }: { readonly applied: Applied }): ReactNode {
  const { apply_id: id, steps: first, steps_total: total } = applied;
  const [page, setPage] = useState(1);
  const skipped = (page - 1) * pageSize;
  const part = skipped < first.length ? 1 : Math.floor(skipped / first.length) + 1;
  const { data, error, refetch } = useQuery({ ...applyQuery(id, part), enabled: part > 1 });
  const steps = part === 1 ? first : data?.steps;
  if (steps === undefined) return <NotYet error={error} refetch={refetch} height={240} />;
  const from = skipped - (part - 1) * first.length;
  return <PageOfSteps steps={steps.slice(from, from + pageSize)} paging={{ page, total, onPage: setPage }} />;
}
