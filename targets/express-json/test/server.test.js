'use strict';

const path = require('node:path');
const { testContract } = require('../../tests/contract');
const { testDocument } = require('../../tests/document');
const { testEncodings } = require('../../tests/encodings');

const directory = path.join(__dirname, '..');

testDocument(directory, 134_054);
testContract(directory);
testEncodings(directory);
