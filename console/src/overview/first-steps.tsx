/** From nothing to the first byte: each step ticked by what is there, until traffic has flowed. */
import { List, Paper, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { TextLink } from '../shared/ui/links.js';
import type { ResourceLinkTarget } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import { runsSomething } from './attention.js';
import type { Stats } from '../shared/dashboard.js';
import { text } from './overview.text.js';

export function hasCarried({ traffic }: Stats): boolean {
  return traffic.total_sessions > 0;
}

export function FirstSteps({ stats }: { readonly stats: Stats }): ReactNode {
  const mayAdd = useMay('operator');
  const { nodes, l4_chains: chains, l4_upstreams: upstreams } = stats;
  const steps: readonly (readonly [words: string, done: boolean, page: ResourceLinkTarget])[] = [
    [text.stepNode, nodes.total > 0, { to: '/nodes/new' }],
    // A chain may also end in an address of its own.
    [text.stepTarget, upstreams.total > 0 || chains.total > 0, { to: '/upstreams/new' }],
    [text.stepChain, chains.total > 0, { to: '/chains/new' }],
    [text.stepDeploy, runsSomething(stats), { to: '/chains' }],
    [text.stepTraffic, hasCarried(stats), { to: '/chains' }],
  ];
  return (
    <Paper withBorder p="md" component="section" aria-label={text.steps}>
      <Stack gap="xs">
        <Text fw={600}>{text.steps}</Text>
        <List listStyleType="none" spacing={4}>
          {steps.map(([words, done, page]) => (
            <List.Item key={words}>
              <State mood={done ? 'good' : 'busy'}>
                {done || !mayAdd ? words : <TextLink {...page}>{words}</TextLink>}
              </State>
            </List.Item>
          ))}
        </List>
      </Stack>
    </Paper>
  );
}
