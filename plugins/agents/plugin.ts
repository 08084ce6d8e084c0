import type { Host } from '../../sdk/index.js'
import { agents } from './contract.js'

export const contract = agents
export const activate = (_host: Host): void => {}
