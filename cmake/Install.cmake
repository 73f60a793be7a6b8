# cmake --install: the program with its man page and completions, the library with its headers and CMake package, the
# files that it ships (they are compiled in as well: a copy to start from). cpack -G DEB makes a package of all.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Man page and completions, written by the program.
set(described ${CMAKE_CURRENT_BINARY_DIR}/described)
add_custom_command(
  OUTPUT ${described}/tritax.bash ${described}/_tritax ${described}/tritax.1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${described}
  COMMAND tritax describe bash > ${described}/tritax.bash
  COMMAND tritax describe zsh > ${described}/_tritax
  COMMAND tritax describe man > ${described}/tritax.1
  DEPENDS tritax VERBATIM)
add_custom_target(tritax_described ALL DEPENDS ${described}/tritax.bash ${described}/_tritax ${described}/tritax.1)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tritax)
install(TARGETS tritax RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET tritax-mpi)  # apart, so that the package needs no MPI
  install(TARGETS tritax-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
endif()
install(FILES ${described}/tritax.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${described}/tritax.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tritax)
install(FILES ${described}/_tritax DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(DIRECTORY model/machine/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/tritax FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/tritax)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# find_package(tritax); target_link_libraries(mine PRIVATE tritax::tritax)
add_library(tritax_all INTERFACE)
set(TRITAX_EXPORTED tritax_all)
get_property(libraries GLOBAL PROPERTY TRITAX_LIBRARIES)
foreach(name ${libraries})
  set_target_properties(tritax_${name} PROPERTIES EXPORT_NAME ${name})
  list(APPEND TRITAX_EXPORTED tritax_${name})
  target_link_libraries(tritax_all INTERFACE tritax_${name})
endforeach()
set_target_properties(tritax_all PROPERTIES EXPORT_NAME tritax)
target_compile_features(tritax_all INTERFACE cxx_std_20)
install(TARGETS ${TRITAX_EXPORTED} EXPORT tritaxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tritax)
install(EXPORT tritaxTargets NAMESPACE tritax:: DESTINATION ${package})
foreach(folder model sim)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tritax FILES_MATCHING PATTERN "*.hpp"
          PATTERN machines EXCLUDE PATTERN uncalibrated EXCLUDE PATTERN command_line EXCLUDE PATTERN imports EXCLUDE)
endforeach()
configure_package_config_file(cmake/tritaxConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/tritaxConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tritaxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tritaxConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/tritaxConfigVersion.cmake
        DESTINATION ${package})

set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS ${CMAKE_CURRENT_BINARY_DIR} tritax tritax /)
set(CPACK_PACKAGE_NAME tritax)
set(CPACK_PACKAGE_CONTACT "The Tritax authors <tritax@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Simulator of multi-GPU kernels that overlap computing with communication")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Packages for programs that use the library; the program needs none of them.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libboost-dev, libeigen3-dev, libtomlplusplus-dev, nlohmann-json3-dev, libfmt-dev, libtbb-dev, zlib1g-dev, libsqlitecpp-dev, libsqlite3-dev")
include(CPack)
