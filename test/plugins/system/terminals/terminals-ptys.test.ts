import { Ptys } from '../../../../plugins/system/terminals/ptys.js'
import { testBackend } from './terminals-backend-cases.js'

testBackend('this process', (_, shell, changed, capture) => Ptys.open(shell, changed, capture))
