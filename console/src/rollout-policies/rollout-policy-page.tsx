/** One rollout policy. Settings that name it stand in the way of a delete. */
import { useQuery } from '@tanstack/react-query';
import { settingsId, settingsQuery } from '../shared/settings.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { rolloutPolicies } from './rollout-policies.js';
import { text } from './rollout-policies.text.js';
import { wavesInWords } from './waves.js';

export const RolloutPolicyPage = resourcePage(rolloutPolicies, ({ resource: policy }) => {
  const { data: settings } = useQuery(settingsQuery);
  const named = [settings?.rollout_policy, settings?.upgrade_rollout_policy].includes(policy.name);
  return (
    <ResourcePage
      of={rolloutPolicies}
      resource={policy}
      removeMeaning={text.removeMeaning}
      usedBy={named ? [{ type: 'connectivity', id: settingsId, name: text.usedBy }] : []}
      facts={{
        [text.waves]: wavesInWords(policy),
        [text.bake]: text.seconds(policy.bake_secs),
        [text.timeout]: text.seconds(policy.apply_timeout_secs),
        [text.maxFailed]: policy.max_failed,
        [text.maxLost]: policy.max_lost,
        [text.onFailure]: text.reactions[policy.on_failure],
        [text.confirm]: policy.confirm_secs === null ? text.never : text.seconds(policy.confirm_secs),
      }}
    />
  );
});
