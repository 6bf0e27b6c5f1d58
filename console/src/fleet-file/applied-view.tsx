/** What an apply did: its entries, its steps, and the PSKs of new nodes, once. */
import { Alert, Button, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { SecretsOnce } from '../shared/ui/secret-once.js';
import { Section } from '../shared/ui/section.js';
import { Sign } from '../shared/ui/state.js';
import { Entries } from './entries.js';
import type { Applied } from './fleet-file.js';
import { text } from './fleet-file.text.js';
import { Steps } from './plan-view.js';

interface AppliedViewProps {
  readonly applied: Applied;
  /** Absent for one that was carried out before. */
  readonly onNext?: () => void;
}

export function AppliedView({ applied, onNext }: AppliedViewProps): ReactNode {
  const { commands, steps, control_psks: psks, incomplete } = applied;
  return (
    <Section title={text.appliedTitle}>
      {incomplete !== null && (
        <Alert color="red" variant="light" icon={<Sign mood="bad" />} role="alert">
          {text.incomplete(incomplete.error, formatCount(incomplete.commands_left))}
        </Alert>
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
      <Steps steps={steps} />
      {onNext !== undefined && (
        <Group>
          <Button variant="default" onClick={onNext}>
            {text.next}
          </Button>
        </Group>
      )}
    </Section>
  );
}
