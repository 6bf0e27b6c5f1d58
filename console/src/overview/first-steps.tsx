/**
 * From nothing to the first byte: each step is ticked once its result exists, until traffic has flowed. The first open
 * step has the button.
 */
import type { ReactNode } from 'react';
import type { Stats } from '../shared/dashboard.js';
import { useMay } from '../shared/session.js';
import { LinkButton } from '../shared/ui/links.js';
import type { ResourceLinkTarget } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import classes from './overview.module.css';
import { text } from './overview.text.js';
import { hasCarried, runsSomething } from './verdict.js';

interface Step {
  readonly words: (typeof text.step)[keyof typeof text.step];
  readonly done: boolean;
  readonly page: ResourceLinkTarget;
}

export function FirstSteps({ stats }: { readonly stats: Stats }): ReactNode {
  const mayAdd = useMay('operator');
  const { nodes, l4_chains: chains, l4_upstreams: upstreams } = stats;
  const steps: readonly Step[] = [
    { words: text.step.node, done: nodes.total > 0, page: { to: '/nodes/new' } },
    // A chain may also end in an address of its own.
    { words: text.step.target, done: upstreams.total > 0 || chains.total > 0, page: { to: '/upstreams/new' } },
    { words: text.step.chain, done: chains.total > 0, page: { to: '/chains/new' } },
    { words: text.step.deploy, done: runsSomething(stats), page: { to: '/chains' } },
    { words: text.step.traffic, done: hasCarried(stats), page: { to: '/chains' } },
  ];
  const next = steps.findIndex(({ done }) => !done);
  return (
    <Section title={text.steps}>
      <ol className={classes.steps}>
        {steps.map(({ words, done, page }, index) => (
          <li key={words.title} className={classes.step} data-next={index === next || undefined}>
            <State mood={done ? 'good' : index === next ? 'busy' : 'idle'}>
              <strong>{words.title}</strong>
            </State>
            <p>{words.meaning}</p>
            {!done && mayAdd && (
              <div>
                <LinkButton {...page} variant={index === next ? 'filled' : 'default'}>
                  {words.action}
                </LinkButton>
              </div>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}
