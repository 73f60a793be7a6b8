// `tritax._core`, the extension module behind `import tritax`. Names and units are those of the C++.
#include "python/bindings/module.hpp"

#include "model/core/error.hpp"

PYBIND11_MODULE(_core, module) {
  namespace python = tritax::python;
  module.doc() = "The simulator behind `import tritax`";
  module.attr("__version__") = TRITAX_VERSION;
  pybind11::register_exception<tritax::UserError>(module, "UserError", PyExc_ValueError);
  python::add_machines(module);
  python::add_workloads(module);
  python::add_schedules(module);
  python::add_builder(module);
  python::add_timelines(module);
  python::add_runs(module);
  python::add_studies(module);
  python::add_comparisons(module);
  python::add_calibrations(module);
  python::add_play(module);
  python::add_models(module);
}
