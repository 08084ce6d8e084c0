export { hostFor } from './node/extension/testing.js'
export type { HostFakes, TestedHost, TestedManifest, TestLifetime } from './node/extension/testing.js'
export type { ListenerFakes, TestedContributions, TestedListener } from './node/extension/testing-listener.js'
