// The agent program behind `sandbox script-agent`: scripts over the Agent Client Protocol on standard input and output.
import { serveScripts } from './script/agent.js'

const { closed } = serveScripts(process.stdin, process.stdout)
// The client has gone, and with it everything there was to do.
await closed
process.exit(0)
