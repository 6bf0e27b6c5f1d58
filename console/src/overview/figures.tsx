/** The figures of the fleet. */
import { Paper, SimpleGrid, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatBytes, formatCount } from '../shared/ui/format.js';
import type { Stats } from '../shared/dashboard.js';
import { text } from './overview.text.js';

export function Figures({ stats }: { readonly stats: Stats }): ReactNode {
  const { nodes, listeners, l4_chains: chains, traffic } = stats;
  const of = (count: number): string => text.of(formatCount(count));
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="sm">
      <Figure name={text.online} value={formatCount(nodes.online)} aside={of(nodes.total)} />
      <Figure name={text.converged} value={formatCount(nodes.converged)} aside={of(nodes.total)} />
      <Figure name={text.listeners} value={formatCount(listeners.running)} aside={of(listeners.intended)} />
      <Figure name={text.deployed} value={formatCount(chains.deployed)} aside={of(chains.total)} />
      <Figure name={text.sessions} value={formatCount(traffic.active_sessions)} />
      <Figure name={text.errors} value={formatCount(traffic.error_sessions)} aside={of(traffic.total_sessions)} />
      <Figure name={text.bytesIn} value={formatBytes(traffic.bytes_in)} aside={text.inAll} />
      <Figure name={text.bytesOut} value={formatBytes(traffic.bytes_out)} aside={text.inAll} />
    </SimpleGrid>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly aside?: string;
}

function Figure({ name, value, aside }: FigureProps): ReactNode {
  return (
    <Paper withBorder px="md" py="xs">
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <Text fz={24} fw={600} style={{ fontVariantNumeric: 'tabular-nums', whiteSpace: 'nowrap' }}>
        {value}{' '}
        <Text span size="xs" c="dimmed" fw={400}>
          {aside}
        </Text>
      </Text>
    </Paper>
  );
}
