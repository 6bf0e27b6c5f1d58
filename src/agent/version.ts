/** The reference agent's version, as sent in SessionOffer and AgentHello. */
export const agentVersion = 'reference-agent/0.1.0';
