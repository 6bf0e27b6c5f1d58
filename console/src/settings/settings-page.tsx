/** The settings of the installation, and the nodes that have some of their own. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { settingsId, settingsQuery } from '../shared/settings.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { Facts } from '../shared/ui/facts.js';
import { formatCount } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Page } from '../shared/ui/page.js';
import { NotYet } from '../shared/ui/page-skeleton.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import type { Override } from './settings.js';
import { text } from './settings.text.js';

const columns = columnsOf<Override>([
  [text.node, (row) => <NamedLink type="node" id={row.node_id} />],
  [text.multiplexing, (row) => <OnOff on={row.multiplex} />],
  [text.port, (row) => row.multiplex_port ?? text.inherited, { numeric: true }],
]);

function OnOff({ on }: { readonly on: boolean }): ReactNode {
  return <State mood={on ? 'good' : 'idle'}>{on ? text.on : text.off}</State>;
}

export function SettingsPage(): ReactNode {
  const { data: settings, error, refetch } = useQuery(settingsQuery);
  if (settings === undefined) return <NotYet error={error} refetch={refetch} />;
  const { offline_after_secs: offlineAfter } = settings;
  const seconds = (value: number): string => text.seconds(formatCount(value));
  return (
    <Page
      title={text.title}
      actions={
        <ResourceActions type="connectivity" id={settingsId} name={text.title} edit={{ to: '/settings/edit' }} />
      }
    >
      <Section title={text.connectivity}>
        <Facts
          facts={{
            [text.heartbeatFact]: seconds(settings.heartbeat_interval_secs),
            [text.metricsFact]: seconds(settings.metrics_interval_secs),
            [text.offlineAfterFact]: offlineAfter === null ? text.automatic : seconds(offlineAfter),
          }}
        />
      </Section>
      <Section title={text.multiplexing}>
        <Facts
          facts={{
            [text.multiplex]: <OnOff on={settings.multiplex} />,
            [text.multiplexPort]: settings.multiplex_port,
          }}
        />
      </Section>
      <Section title={text.rollouts}>
        <Facts
          facts={{
            [text.rolloutPolicy]: settings.rollout_policy ?? text.atOnce,
            [text.upgradePolicy]: settings.upgrade_rollout_policy ?? text.atOnce,
          }}
        />
      </Section>
      <Section
        title={text.identity}
        actions={
          <LinkButton variant="default" to="/settings/identity">
            {text.showIdentity}
          </LinkButton>
        }
      >
        {text.identityMeaning}
      </Section>
      <Section title={text.overrides}>
        <DataTable
          caption={text.overridesCaption}
          columns={columns}
          rows={settings.nodes}
          rowKey={({ node_id: id }) => id}
          empty={text.noOverrides}
        />
      </Section>
    </Page>
  );
}
