import { gate } from './gate.js'

gate('qwen')
