/** The reference agent's release, as it tells it in SessionOffer and AgentHello. */
export const agentVersion = 'reference-agent/0.1.0';
