# What the sources include, for Emscripten, which must not see the other headers of /usr/include: links to folders of
# headers there, and stand-ins for libraries that Debian does not have for WebAssembly.
set(headers ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${headers})
foreach(name boost fmt nlohmann toml++ CLI eigen3)
  unset(found CACHE)
  find_path(found NAMES ${name} PATHS /usr/local/include /usr/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  file(CREATE_LINK ${found}/${name} ${headers}/${name} SYMBOLIC)
endforeach()
unset(found CACHE)

# Exceptions of WebAssembly itself: the older way calls JavaScript at every place that one may pass.
add_compile_options(-fwasm-exceptions)
add_link_options(-fwasm-exceptions)

add_library(tritax_foreign INTERFACE)
target_include_directories(tritax_foreign SYSTEM INTERFACE ${headers} ${headers}/eigen3)
target_include_directories(tritax_foreign BEFORE INTERFACE ${CMAKE_CURRENT_LIST_DIR}/include)
foreach(target Boost::headers ZLIB::ZLIB Eigen3::Eigen nlohmann_json::nlohmann_json CLI11::CLI11)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES tritax_foreign)
endforeach()

add_library(TBB::tbb INTERFACE IMPORTED GLOBAL)
set_target_properties(TBB::tbb PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/serial)

add_library(tritax_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_link_libraries(tritax_fmt PUBLIC tritax_foreign)
add_library(fmt::fmt ALIAS tritax_fmt)
