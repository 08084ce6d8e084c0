import { refuse, type Host } from '../../../sdk/index.js'
import { packageVersion } from '../../../sdk/node/programs/package.js'

/** The text of a built-in base. No agent program shows the text that it brings, so every base is the sandbox's own. */
export const builtinPrompt = async (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
): Promise<{ text: string; version: string }> => {
  if (!(await host.serves('agent.instructions'))) refuse('unavailable', 'this sandbox runs no turns: group agent')
  const { text } = await host.call('agent.instructions')
  return { text, version: packageVersion(host.place.root) }
}
