#pragma once

#include "tbb/serial.h"
