/**
 * What the machine of a node needs, with its PSK, which is shown only once: the page holds it, neither the cache nor
 * the address does. Says when the agent has connected.
 */
import { Alert, Button, Group, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { useLoss } from '../shared/forms/losses.js';
import { CopyField } from '../shared/ui/copy-field.js';
import { Section } from '../shared/ui/section.js';
import { Sign, State } from '../shared/ui/state.js';
import { containerLine, environmentOf, systemdLines } from './machine-files.js';
import { controlEndpointQuery, nodes } from './nodes.js';
import { text } from './nodes.text.js';

interface MachineProps {
  readonly nodeId: string;
  /** Null when it was shown before: a repeated request does not show it again. */
  readonly psk: string | null;
  /** The person has kept the PSK; it is no longer shown. */
  readonly onKept: () => void;
}

export function Machine({ nodeId, psk, onKept }: MachineProps): ReactNode {
  const { data } = useQuery(controlEndpointQuery);
  const [typed, setTyped] = useState<string>();
  const [copied, setCopied] = useState<string>();
  const settle = useLoss('secret', () => (psk === null || copied === psk ? [] : [text.pskAlone]));
  const endpoint = typed ?? data?.endpoint ?? '';
  return (
    <Section title={text.machine} actions={<Arrival nodeId={nodeId} />}>
      <Stack maw={860}>
        <Alert color="orange" variant="light" icon={<Sign mood="warning" />}>
          {psk === null ? text.pskShownBefore : text.pskOnce}
        </Alert>
        <TextInput
          label={text.endpoint}
          description={text.endpointHint}
          value={endpoint}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          spellCheck={false}
        />
        <CopyField
          label={text.environmentFile}
          description="/etc/gateway-agent/env"
          value={environmentOf(nodeId, endpoint, psk)}
          onCopied={() => setCopied(psk ?? undefined)}
        />
        <Tabs defaultValue="systemd" keepMounted={false}>
          <Tabs.List>
            <Tabs.Tab value="systemd">{text.systemd}</Tabs.Tab>
            <Tabs.Tab value="container">{text.container}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="systemd" pt="sm">
            <Stack gap="xs">
              <CopyField label={text.systemdLines} value={systemdLines} />
              <Text size="sm" c="dimmed">
                {text.systemdHint}
              </Text>
            </Stack>
          </Tabs.Panel>
          <Tabs.Panel value="container" pt="sm">
            <Stack gap="xs">
              <CopyField label={text.containerLine} value={containerLine} />
              <Text size="sm" c="dimmed">
                {text.containerHint}
              </Text>
            </Stack>
          </Tabs.Panel>
        </Tabs>
        <Group>
          <Button
            onClick={() => {
              settle();
              onKept();
            }}
          >
            {text.kept}
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}

/** Whether its agent is connected: until its machine has the PSK, none can be. */
function Arrival({ nodeId }: Pick<MachineProps, 'nodeId'>): ReactNode {
  const { data: node } = useQuery(nodes.one(nodeId));
  const online = node?.status === 'online';
  return (
    <div aria-live="polite">
      <State mood={online ? 'good' : 'busy'}>{online ? text.arrived : text.waiting}</State>
    </div>
  );
}
