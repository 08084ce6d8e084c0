import { gate } from './gate.js'

gate('codex')
